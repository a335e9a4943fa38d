package memgate

import "sort"

// process is what a probe knows of one process.
type process struct {
	name  string // of the program a person knows; empty: nobody can quit it
	bytes uint64 // what its end gives back
}

const (
	usersKept    = 8
	userMinBytes = 64 << 20 // quitting less makes no difference
)

// biggest adds up processes by program and keeps the biggest.
func biggest(ps []process) []User {
	sums := map[string]uint64{}
	for _, p := range ps {
		if p.name != "" {
			sums[p.name] = add(sums[p.name], p.bytes)
		}
	}
	var users []User
	for name, bytes := range sums {
		if bytes >= userMinBytes {
			users = append(users, User{name, bytes})
		}
	}
	sort.Slice(users, func(i, j int) bool {
		if users[i].Bytes != users[j].Bytes {
			return users[i].Bytes > users[j].Bytes
		}
		return users[i].Name < users[j].Name
	})
	return users[:min(len(users), usersKept)]
}
