package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"pond/app"
	"pond/app/settings"
	"pond/app/update"
	"pond/assets"
	"pond/inference"
)

// keyVariable holds the API key where a flag would show it to everyone who lists processes.
const keyVariable = "POND_API_KEY"

func newServe(s streams) *cobra.Command {
	var engine engineFlags
	var addr, key string
	var hosts, origins []string
	var diskGB int
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the OpenAI-compatible endpoint",
		Long: `Loads a model and serves it at http://ADDR/v1 until Ctrl-C or SIGTERM. It prints "listening on URL" when it is ready.

The endpoint listens on this machine alone unless --addr says otherwise; then it needs a key (--api-key or ` + keyVariable + `) and the names by
which clients will call it (--allow-host).

Exit codes: 2 a flag is wrong, 3 the model is not installed, 4 the model cannot be opened, 5 the address cannot be served
(the message names the next free port), 6 the executor does not run here, 7 there is not enough memory.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkAddresses(addr, hosts); err != nil {
				return err
			}
			config, err := engine.config(s)
			if err != nil {
				return err
			}
			if addr != "" {
				config.Address = addr
			}
			config.AllowedHosts = append(config.AllowedHosts, hosts...)
			config.AllowedOrigins = append(config.AllowedOrigins, origins...)
			if diskGB < 0 {
				return usageError("--disk-cache: got %d GB, want 0 for none, or how many conversations may take", diskGB)
			}
			paths := settings.DefaultPaths()
			chosen, err := loadSettings()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("disk-cache") {
				chosen.DiskGB = diskGB
			}
			config.Disk, config.Quiet = app.DiskOf(chosen, paths), chosen.Quiet
			if cmd.Flags().Changed("disk-cache") && diskGB == 0 {
				config.Disk = inference.Disk{} // what others keep there stays
			}
			if given := cmp.Or(key, os.Getenv(keyVariable)); given != "" {
				config.APIKey = given
			}
			return serve(cmd.Context(), s, config, "")
		},
	}
	engine.add(cmd)
	cmd.Flags().StringVar(&addr, "addr", "", "host:port to listen on (default: the one in the settings, else 127.0.0.1:11535); port 0 takes any free one")
	cmd.Flags().StringVar(&key, "api-key", "", "key that clients must send (default: "+keyVariable+" from the environment, else the one in the settings; none is needed on this machine alone)")
	cmd.Flags().StringSliceVar(&hosts, "allow-host", nil, "a name by which clients may call this endpoint besides localhost, such as my-mac.local (repeat or separate by commas)")
	cmd.Flags().StringSliceVar(&origins, "allow-origin", nil, "a web page beyond this machine that may call this endpoint, such as https://chat.example (repeat or separate by commas)")
	cmd.Flags().IntVar(&diskGB, "disk-cache", 0, "GB of kept conversations on the disk, which spare reading them again after a restart; 0 keeps none and leaves what is there (default: as in the settings, else 8)")
	return cmd
}

// checkAddresses refuses what cannot be an address, or a name of one, on any machine; addr may be empty.
func checkAddresses(addr string, hosts []string) error {
	if addr != "" {
		_, port, err := net.SplitHostPort(addr)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return usageError("--addr: got %q, want host:port with a port from 0 to 65535, such as 127.0.0.1:11535", addr)
		}
	}
	for _, host := range hosts {
		if !isHost(host) {
			return usageError("--allow-host: got %q, want a name or an address, with or without a port, such as my-mac.local", host)
		}
	}
	return nil
}

// isHost reports whether a text is what a client can send as the Host of a request.
func isHost(text string) bool {
	if strings.HasPrefix(text, "[") {
		if inner, ok := strings.CutSuffix(text[1:], "]"); ok {
			_, err := netip.ParseAddr(inner)
			return err == nil
		}
		_, err := netip.ParseAddrPort(text)
		return err == nil
	}
	name, port, _ := strings.Cut(text, ":")
	return strings.Trim(name, ".") != "" && !strings.ContainsAny(name, "[]/@*? \t") && strings.Trim(port, "0123456789") == ""
}

// defaultConfig is what pond without a command runs.
func defaultConfig(s streams) (app.Config, error) {
	var f engineFlags
	f.executor = "auto"
	config, err := f.config(s)
	if chosen, err := loadSettings(); err == nil { // broken ones are the error of config
		config.Disk, config.Quiet = app.DiskOf(chosen, settings.DefaultPaths()), chosen.Quiet
	}
	if key := os.Getenv(keyVariable); key != "" {
		config.APIKey = key
	}
	return config, err
}

// defaultHome is what the window looks after.
func defaultHome(s streams) (app.Home, error) {
	var f engineFlags
	f.executor = "auto"
	executor, err := f.chosenExecutor()
	paths := settings.DefaultPaths()
	home := app.Home{Paths: paths, Demo: assets.Demo(), Known: s.known(), Tools: toolEnvironment(), Executor: executor, Log: app.OpenLog(paths.Logs)}
	home.Logger = home.Log.Logger()
	var trouble error
	if home.System, trouble = app.ThisSystem(paths); trouble != nil {
		home.Logger.Warn("part of the system cannot be used", "error", trouble)
	}
	home.Updates = ownUpdates(home, app.ThisMachine().OSVersion)
	return home, err
}

// ownUpdates is what keeps this app current; nil where nothing does: outside an app, and in one that names no feed.
func ownUpdates(home app.Home, system string) *update.Updater {
	executable, err := os.Executable()
	if err == nil {
		var u *update.Updater
		if u, err = update.Of(executable, app.Version, system, home.Paths.Updates); err == nil {
			return u
		}
	}
	if !errors.Is(err, update.ErrNone) {
		home.Logger.Warn("Pond cannot update itself", "error", err)
	}
	return nil
}

// serveHeadless is pond without a command where there is no window; why says so.
func serveHeadless(ctx context.Context, s streams, why string) error {
	config, err := defaultConfig(s)
	if err != nil {
		return err
	}
	return serve(ctx, s, config, why+", so Pond serves its endpoint alone")
}

// serve runs the endpoint until it is asked to end, and tells when it is ready. notice, where not empty, comes before.
func serve(ctx context.Context, s streams, config app.Config, notice string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if notice != "" {
		fmt.Fprintln(s.out, notice)
	}
	p := app.New(config)
	watching, enough := context.WithCancel(context.Background())
	told := make(chan struct{})
	go func() {
		defer close(told)
		p.Watch(watching, func(state app.State) {
			if state.Phase != app.Running {
				return
			}
			enough()
			fmt.Fprintf(s.out, "%s on %s, context of %s\n", state.Model, state.Executor, app.Tokens(state.ContextTokens))
			if state.Memory != "" {
				fmt.Fprintf(s.out, "memory: %s\n", state.Memory)
			}
			if line := switchedOff(config.Ablate); line != "" {
				fmt.Fprintln(s.out, line)
			}
			if e := p.Engine(); e != nil && e.Stats().Disk.Trouble != "" {
				fmt.Fprintf(s.out, "conversations are not kept on the disk: %s\n", e.Stats().Disk.Trouble)
			}
			fmt.Fprintf(s.out, "listening on %s\n", state.Endpoint())
			fmt.Fprintf(s.out, "try it:\n  %s\n", app.CurlLine(strings.Replace(state.Address, "0.0.0.0", "127.0.0.1", 1), state.Model, state.NeedsKey))
		})
	}()
	err := p.Start(ctx)
	enough()
	<-told
	return withCode(err)
}
