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

// menuObject is where the icon's menu is.
func (i trayItem) menuObject(t *testing.T) dbus.BusObject {
	t.Helper()
	v, err := i.object.GetProperty(itemName + ".Menu")
	if err != nil {
		t.Fatal(err)
	}
	path, ok := v.Value().(dbus.ObjectPath)
	if !ok {
		t.Fatalf("the menu's path: got %v", v)
	}
	return i.conn.Object(i.object.Destination(), path)
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
	object := i.menuObject(t)
	deadline := time.Now().Add(patience)
	for {
		var revision uint32
		var root node
		if err := object.Call(menuName+".GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &root); err != nil {
			t.Fatal(err)
		}
		m, err := flatten(root)
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

// click chooses an entry. Between the reading and the click the menu may have been rebuilt, so it is read anew first.
func (i trayItem) click(t *testing.T, label string) {
	t.Helper()
	m := i.menu(t, func(m trayMenu) bool { e, ok := m.find(label); return ok && e.enabled })
	e, _ := m.find(label)
	err := i.menuObject(t).Call(menuName+".Event", 0, e.id, "clicked", dbus.MakeVariant(""), uint32(0)).Err
	if err != nil {
		t.Fatalf("click on %s: %v", label, err)
	}
}
