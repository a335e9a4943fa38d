package app

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// message is one message that app sends to an object of the system: who gets it, with which Go types it is sent, and what Apple declares.
type message struct {
	owner, sign, selector string // sign: + of a class, - of an object
	function              string // the one that sends it
	returns, arguments    string // Go
	appleReturns          string // as Apple's headers declare it
	appleArguments        string
}

// messages is everything that the _darwin.go files of this package send; the test below holds the source to it. BOOL is one byte and Go's bool, NSInteger is Go's
// int, an object and a pointer are as wide as objc.ID.
var messages = []message{
	{"NSApplication", "+", "sharedApplication", "nsApplicationShared", "objc.ID", "", "__kindof NSApplication *", ""},
	{"NSApplication", "-", "setActivationPolicy:", "nsApplicationSetActivationPolicy", "bool", "int", "BOOL", "NSApplicationActivationPolicy"},
	{"NSApplication", "-", "activateIgnoringOtherApps:", "nsApplicationActivate", "", "bool", "void", "BOOL"},
	{"NSApplication", "-", "windows", "nsApplicationWindows", "objc.ID", "", "NSArray<NSWindow *> *", ""},
	{"NSArray", "-", "count", "nsArrayCount", "uint", "", "NSUInteger", ""},
	{"NSArray", "-", "objectAtIndex:", "nsArrayAt", "objc.ID", "uint", "ObjectType", "NSUInteger"},
	{"NSObject", "-", "className", "nsObjectClassName", "objc.ID", "", "NSString *", ""},
	{"NSWindow", "-", "screen", "nsWindowScreen", "objc.ID", "", "NSScreen *", ""},
	{"NSString", "+", "stringWithUTF8String:", "nsStringFrom", "objc.ID", "string", "instancetype", "const char *"},
	{"NSString", "-", "UTF8String", "nsStringText", "string", "", "const char *", ""},
	{"NSError", "-", "localizedDescription", "nsErrorDescription", "objc.ID", "", "NSString *", ""},
	{"SMAppService", "+", "mainAppService", "smAppServiceMain", "objc.ID", "", "SMAppService *", ""},
	{"SMAppService", "-", "status", "smAppServiceStatus", "int", "", "SMAppServiceStatus", ""},
	{"SMAppService", "-", "registerAndReturnError:", "smAppServiceRegister", "bool", "unsafe.Pointer", "BOOL", "NSError **"},
	{"SMAppService", "-", "unregisterAndReturnError:", "smAppServiceUnregister", "bool", "unsafe.Pointer", "BOOL", "NSError **"},
	{"NSWorkspace", "+", "sharedWorkspace", "nsWorkspaceShared", "objc.ID", "", "NSWorkspace *", ""},
	{"NSWorkspace", "-", "notificationCenter", "nsWorkspaceCenter", "objc.ID", "", "NSNotificationCenter *", ""},
	{"NSObject", "+", "new", "nsObjectNew", "objc.ID", "", "instancetype", ""},
	{"NSNotificationCenter", "-", "addObserver:selector:name:object:", "nsCenterAdd", "", "objc.ID,objc.SEL,objc.ID,objc.ID", "void", "id,SEL,NSNotificationName,id"},
	{"NSNotificationCenter", "-", "removeObserver:", "nsCenterRemove", "", "objc.ID", "void", "id"},
}

// functions are the C functions, by the symbol: their Go type, and Apple's declaration.
var functions = map[string][2]string{
	"IOPMAssertionCreateWithName":  {"func(kind objc.ID, level uint32, name objc.ID, id *uint32) int32", "IOReturn (CFStringRef, IOPMAssertionLevel, CFStringRef, IOPMAssertionID *)"},
	"IOPMAssertionRelease":         {"func(id uint32) int32", "IOReturn (IOPMAssertionID)"},
	"IOPSGetTimeRemainingEstimate": {"func() float64", "CFTimeInterval (void)"},
}

// ownSelectors are of the observer class that sleep_darwin.go makes.
var ownSelectors = []string{"pondWillSleep:", "pondDidWake:"}

// TestMessages compares the table with the source: a message, a class or a function that is sent and not in the table is one that nobody checked against
// Apple's page, and one in the table that is not sent is stale.
func TestMessages(t *testing.T) {
	files, err := filepath.Glob("*_darwin.go")
	if err != nil || len(files) < 4 {
		t.Fatalf("got %v, %v", files, err)
	}
	fset := token.NewFileSet()
	sent := map[string]message{} // by function
	var classes []string
	symbols := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]string{} // of structs: name -> type
		ast.Inspect(file, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok && len(f.Names) == 1 {
				if _, ok := f.Type.(*ast.FuncType); ok {
					fields[f.Names[0].Name] = types.ExprString(f.Type)
				}
			}
			return true
		})
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			parameters := map[string]string{}
			for _, field := range f.Type.Params.List {
				for _, n := range field.Names {
					parameters[n.Name] = types.ExprString(field.Type)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch what := types.ExprString(call.Fun); {
				case what == "class" || what == "objc.GetClass":
					if c := literal(call.Args[0]); c != "" {
						classes = append(classes, c)
					}
				case what == "purego.RegisterLibFunc":
					_, field, _ := strings.Cut(types.ExprString(call.Args[0]), ".")
					symbols[literal(call.Args[2])] = fields[field]
				case strings.HasPrefix(what, "objc.Send["), strings.HasSuffix(what, ".Send"):
					m, args := message{function: f.Name.Name}, call.Args
					if result, ok := strings.CutPrefix(what, "objc.Send["); ok {
						m.returns, args = strings.TrimSuffix(result, "]"), args[1:]
					}
					m.selector = selector(args[0])
					var kinds []string
					for _, a := range args[1:] {
						kind, ok := parameters[types.ExprString(a)]
						if !ok {
							t.Errorf("%s sends %s with %s, which is none of its parameters: its type does not stand beside the selector", f.Name.Name, m.selector, types.ExprString(a))
						}
						kinds = append(kinds, kind)
					}
					m.arguments = strings.Join(kinds, ",")
					if _, twice := sent[m.function]; twice {
						t.Errorf("%s sends two messages, want a function for each", m.function)
					}
					sent[m.function] = m
				case what == "objc.RegisterName":
					if s := literal(call.Args[0]); strings.HasPrefix(s, "pond") && !slices.Contains(ownSelectors, s) {
						t.Errorf("%s: %s is no selector of ours", f.Name.Name, s)
					}
				}
				return true
			})
		}
	}
	for _, want := range messages {
		got, ok := sent[want.function]
		switch {
		case !ok:
			t.Errorf("%s is in the table and sends nothing", want.function)
		case got.selector != want.selector || got.returns != want.returns || got.arguments != want.arguments:
			t.Errorf("%s: got %s (%s) %s, want %s (%s) %s", want.function, got.returns, got.arguments, got.selector, want.returns, want.arguments, want.selector)
		case strings.Count(want.selector, ":") != count(want.arguments) || strings.Count(want.selector, ":") != count(want.appleArguments):
			t.Errorf("%s: got %d arguments in Go and %d at Apple for %s", want.function, count(want.arguments), count(want.appleArguments), want.selector)
		}
		delete(sent, want.function)
		if want.sign == "+" && !slices.Contains(classes, want.owner) {
			t.Errorf("%s: class %s is never asked for", want.function, want.owner)
		}
	}
	for name, m := range sent {
		t.Errorf("%s sends %s, which is not in the table", name, m.selector)
	}
	for symbol, goType := range symbols {
		if want := functions[symbol][0]; want != goType {
			t.Errorf("%s: got %s, want %s", symbol, goType, want)
		}
	}
	if len(symbols) != len(functions) {
		t.Errorf("got functions %v, want as many as the table has", symbols)
	}
	owners := map[string]bool{}
	for _, m := range messages {
		owners[m.owner] = true
	}
	sort.Strings(classes)
	for _, c := range slices.Compact(classes) {
		if !owners[c] {
			t.Errorf("class %s is used and not in the table", c)
		}
	}
}

func count(list string) int {
	if list == "" {
		return 0
	}
	return strings.Count(list, ",") + 1
}

func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(l.Value)
	if err != nil {
		return ""
	}
	return text
}

// selector reads objc.RegisterName("...").
func selector(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		return literal(call.Args[0])
	}
	return ""
}

// TestMessagesOfApple compares the table with a list of what Apple's headers declare: kind, owner, sign, selector, returned type and arguments, with
// tabs between. It is not part of the repository.
func TestMessagesOfApple(t *testing.T) {
	name := os.Getenv("POND_TEST_APPLE_SPEC")
	if name == "" {
		t.Skip("POND_TEST_APPLE_SPEC names no list of Apple's selectors")
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	declared := map[string][]string{}
	listed := map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if c := strings.Split(s.Text(), "\t"); len(c) >= 6 {
			declared[c[1]+c[2]+c[3]] = c
			listed[c[1]] = true
		}
	}
	checked := 0
	for _, m := range messages {
		c, ok := declared[m.owner+m.sign+m.selector]
		switch {
		case !ok && !listed[m.owner]:
			t.Logf("%s is not in the list", m.owner)
			continue
		case !ok:
			t.Errorf("%s[%s %s] is not declared", m.sign, m.owner, m.selector)
		case strings.TrimPrefix(c[4], "NS_RETURNS_INNER_POINTER ") != m.appleReturns || c[5] != m.appleArguments:
			t.Errorf("%s[%s %s]: got (%s) %s, want (%s) %s", m.sign, m.owner, m.selector, m.appleReturns, m.appleArguments, c[4], c[5])
		}
		checked++
	}
	if checked == 0 {
		t.Error("nothing was compared")
	}
}
