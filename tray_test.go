package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
)

// watcher is the side of the tray that a panel plays: it owns org.kde.StatusNotifierWatcher on a private bus, hears of the icons that
// register, and reads and clicks their menus (com.canonical.dbusmenu).
// https://www.freedesktop.org/wiki/Specifications/StatusNotifierItem/StatusNotifierWatcher/
type watcher struct {
	conn  *dbus.Conn
	items chan trayItem
}

const (
	watcherName = "org.kde.StatusNotifierWatcher"
	watcherPath = dbus.ObjectPath("/StatusNotifierWatcher")
	itemPath    = dbus.ObjectPath("/StatusNotifierItem")
	itemName    = "org.kde.StatusNotifierItem"
	menuName    = "com.canonical.dbusmenu"
)

func newWatcher(t *testing.T, address string) *watcher {
	t.Helper()
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	w := &watcher{conn, make(chan trayItem, 4)}
	properties := map[string]*prop.Prop{
		"IsStatusNotifierHostRegistered": {Value: true},
		"ProtocolVersion":                {Value: int32(0)},
		"RegisteredStatusNotifierItems":  {Value: []string{}},
	}
	if _, err := prop.Export(conn, watcherPath, prop.Map{watcherName: properties}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Export(w, watcherPath, watcherName); err != nil {
		t.Fatal(err)
	}
	reply, err := conn.RequestName(watcherName, dbus.NameFlagDoNotQueue)
	if err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("the name of the watcher: got %v, %v", reply, err)
	}
	return w
}

// RegisterStatusNotifierItem is called by an icon: with its bus name, or with its path.
func (w *watcher) RegisterStatusNotifierItem(service string, sender dbus.Sender) *dbus.Error {
	path := itemPath
	if strings.HasPrefix(service, "/") {
		path = dbus.ObjectPath(service)
	}
	w.items <- trayItem{w.conn, w.conn.Object(string(sender), path)}
	return nil
}

// RegisterStatusNotifierHost is part of the interface.
func (w *watcher) RegisterStatusNotifierHost(string) *dbus.Error { return nil }

// item waits for an icon.
func (w *watcher) item(t *testing.T) trayItem {
	t.Helper()
	select {
	case i := <-w.items:
		return i
	case <-time.After(patience):
		t.Fatal("no icon came")
	}
	return trayItem{}
}

// trayItem is one icon.
type trayItem struct {
	conn   *dbus.Conn
	object dbus.BusObject
}

// entry is one line of a menu. Its number changes at every rebuild: entries are found by their label.
type entry struct {
	id      int32
	label   string
	enabled bool
}

type trayMenu []entry

func (m trayMenu) first() string {
	if len(m) == 0 {
		return ""
	}
	return m[0].label
}

func (m trayMenu) find(label string) (entry, bool) {
	for _, e := range m {
		if e.label == label || strings.HasPrefix(e.label, label+" (") {
			return e, true
		}
	}
	return entry{}, false
}

// icon is the picture that the icon shows.
func (i trayItem) icon(t *testing.T) []byte {
	t.Helper()
	v, err := i.object.GetProperty(itemName + ".IconPixmap")
	if err != nil {
		t.Fatal(err)
	}
	return []byte(v.String())
}

// node is the layout of a menu on the bus: (ia{sv}av).
type node struct {
	ID         int32
	Properties map[string]dbus.Variant
	Children   []dbus.Variant
}

// menu reads the menu until it is as wanted (nil: as it is); the submenus' entries follow theirs.
func (i trayItem) menu(t *testing.T, wanted func(trayMenu) bool) trayMenu {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		m, _, err := i.read()
		if err != nil {
			t.Fatal(err)
		}
		if wanted == nil || wanted(m) {
			return m
		}
		if time.Now().After(deadline) {
			t.Fatalf("the menu did not become as wanted: %v", m)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// read reads the menu as it is, and tells where it is.
func (i trayItem) read() (trayMenu, dbus.ObjectPath, error) {
	v, err := i.object.GetProperty(itemName + ".Menu")
	if err != nil {
		return nil, "", err
	}
	path, ok := v.Value().(dbus.ObjectPath)
	if !ok {
		return nil, "", fmt.Errorf("the menu's path: got %v", v)
	}
	var revision uint32
	var root node
	err = i.conn.Object(i.object.Destination(), path).Call(menuName+".GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &root)
	if err != nil {
		return nil, "", err
	}
	m, err := flatten(root)
	return m, path, err
}

func flatten(n node) (trayMenu, error) {
	var out trayMenu
	for _, v := range n.Children {
		var child node
		if err := dbus.Store([]any{v.Value()}, &child); err != nil {
			return nil, fmt.Errorf("menu: %w", err)
		}
		e := entry{id: child.ID, enabled: true}
		if label, ok := child.Properties["label"].Value().(string); ok {
			e.label = label
		}
		if enabled, ok := child.Properties["enabled"].Value().(bool); ok {
			e.enabled = enabled
		}
		if kind, ok := child.Properties["type"].Value().(string); !ok || kind != "separator" {
			out = append(out, e)
		}
		below, err := flatten(child)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// click chooses an entry, and again while it had no effect: between the reading and the click the menu may have been rebuilt, and every entry has
// another number then. waits tells whether the effect is still to come.
func (i trayItem) click(t *testing.T, label string, waits func(*testing.T) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		m, path, err := i.read()
		if e, ok := m.find(label); ok && e.enabled { // an error is a number that is gone, or an app
			err = i.conn.Object(i.object.Destination(), path).Call(menuName+".Event", 0, e.id, "clicked", dbus.MakeVariant(""), uint32(0)).Err
		}
		for until := time.Now().Add(clickPatience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			if !waits(t) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("a click on %s does nothing: %v, %v", label, m, err)
		}
	}
}

// clickPatience is how long the effect of a click may take before it is clicked again.
const clickPatience = 15 * time.Second

// offers makes a test of whether an entry is the first still.
func (i trayItem) offers(label string) func(*testing.T) bool {
	return func(t *testing.T) bool {
		t.Helper()
		m, _, err := i.read()
		if err != nil {
			t.Fatal(err)
		}
		return m.first() == label
	}
}
