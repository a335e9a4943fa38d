// Command pond is an endpoint and a chat for one language model on your own machine.
package main

func main() {}
