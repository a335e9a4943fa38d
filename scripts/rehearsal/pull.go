package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"pond/inference/checkpoint/fetch"
	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
	"pond/inference/tinymodel/fullsize"
)

const (
	modelID  = "rehearsal" // and the name of its folder
	repo     = "rehearsal/fullsize"
	revision = "main"
	sentPath = "/sent"
)

// model is the manifest of the made files. It stands in for the published one in this program alone.
func (p play) model(ctx context.Context) (manifest.Manifest, error) {
	made, err := p.made()
	if err != nil {
		return manifest.Manifest{}, err
	}
	m := manifest.Manifest{ID: modelID, Sources: []manifest.Source{{Repo: repo, Revision: revision}}}
	digests := fullsize.Digests()
	for _, f := range made.Files() {
		digest := digests[f.Name]
		if p.small {
			if digest, err = f.Digest(ctx); err != nil {
				return m, err
			}
		}
		file := manifest.File{Name: f.Name, Bytes: f.Bytes}
		if err := file.SHA256.UnmarshalText([]byte(digest)); err != nil {
			return m, fmt.Errorf("%s: %w", f.Name, err)
		}
		m.Files = append(m.Files, file)
	}
	return m, nil
}

// serve hands out the files as a model hub does, and counts what it sends.
func (p play) serve(ctx context.Context) error {
	m, err := p.model(ctx)
	if err != nil {
		return err
	}
	made, err := p.made()
	if err != nil {
		return err
	}
	var sent atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+sentPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, sent.Load()) })
	mux.HandleFunc("GET /"+repo+"/resolve/"+revision+"/{file}", func(w http.ResponseWriter, r *http.Request) {
		f, ok := made.File(r.PathValue("file"))
		known, listed := m.File(r.PathValue("file"))
		if !ok || !listed {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", `"`+known.SHA256.String()+`"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(counted{w, &sent}, r, "", time.Time{}, io.NewSectionReader(f, 0, f.Bytes))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{Handler: mux}
	go func() {
		io.Copy(io.Discard, os.Stdin) // ends when the parent does
		server.Close()
	}()
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// counted counts the bytes of bodies.
type counted struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// models is the folder of models of the rehearsal.
func (p play) models() store.Store { return store.Store{Root: p.dir} }

// pull downloads what is missing, and prints how many bytes of the model are there.
func (p play) pull(ctx context.Context) error {
	m, err := p.model(ctx)
	if err != nil {
		return err
	}
	o := store.PullOptions{}
	if o.Sources, err = fetch.Sources(m, os.Getenv); err != nil {
		return err
	}
	before, err := p.models().Status(m)
	if err != nil {
		return err
	}
	o.Connections, o.ChunkBytes = connections, p.chunkBytes()
	if p.small {
		o.RateBytes = m.Bytes() / 4 // four seconds, in which to be killed
	}
	first := int64(-1)
	o.Report = func(e fetch.Event) {
		if first < 0 {
			first = e.Progress.Done // of the files that are not whole yet
		}
		switch e.Kind {
		case fetch.Trouble, fetch.Restarted:
			fmt.Fprintf(os.Stderr, "pull: %s from %s: %v\n", e.File, e.Source, e.Err)
		case fetch.Moving:
			fmt.Println(before.DoneBytes + e.Progress.Done - first)
		}
	}
	if err := p.models().Pull(ctx, m, o); err != nil {
		return err
	}
	return p.ready(m)
}

// verify reads the files on the disk.
func (p play) verify(ctx context.Context) error {
	m, err := p.model(ctx)
	if err != nil {
		return err
	}
	if err := p.models().Verify(ctx, m, nil); err != nil {
		return err
	}
	return p.ready(m)
}

// ready fails unless every byte was verified.
func (p play) ready(m manifest.Manifest) error {
	st, err := p.models().Status(m)
	if err == nil && st.State != store.Ready {
		err = fmt.Errorf("got a model that is %s, want %s", st.Line(), store.Ready)
	}
	return err
}
