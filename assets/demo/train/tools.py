"""Tool schemas with varied names, and conversations that call them."""

CITY = "Rome Paris London Berlin Madrid Lisbon Tokyo Oslo Vienna Athens Cairo Dublin Milan Boston Chicago Seattle Toronto Sydney Lima Prague Turin Naples Geneva Munich".split()
ITEM = """red shoes|a blue jacket|green tea|black coffee|a desk lamp|a mountain bike|running shoes|a winter coat|a cook book|the history of Rome|the moon landing|solar energy|
cheap flights|vegetable soup|jazz music|chess rules|cat food|a birthday cake|electric cars|the Roman Empire|quantum computers|garden plants|old maps|good movies""".replace("\n", "").split("|")
NOTE = """buy milk|call my sister|water the plants|pay the rent|send the report|book a table|clean the kitchen|visit the dentist|return the books|feed the cat|wash the car|write to Anna|
pick up the kids|order new paper|check the mail|read chapter two""".replace("\n", "").split("|")
NAME = "Anna Tom Maria Paul Lucy Sam Ben Nora Oscar Emma David Julia Peter Sofia".split()
WEEKDAY = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
LANGS = "Italian French Spanish German Portuguese Dutch Swedish Polish Greek".split()
PHRASE = "good morning|thank you|see you tomorrow|where is the station|I am hungry|happy birthday|the book is on the table|how are you|good night|I like music".split("|")
CUR = "USD EUR GBP JPY CHF CAD AUD".split()


def fn(name, desc, props, required):
    return {"type": "function", "function": {"name": name, "description": desc, "parameters": {"type": "object", "properties": props, "required": required}}}


def S(desc=None, **kw):
    d = {"type": "string"}
    if desc:
        d["description"] = desc
    return {**d, **kw}


def N(desc=None, kind="number"):
    return {"type": kind, "description": desc} if desc else {"type": kind}


def make(r, kind):
    """-> (schema, question, arguments, result object, answer after the result, what the tool does)."""
    d = lambda s: s if r.random() < 0.75 else None
    if kind == "weather":
        c, t, w = r.choice(CITY), r.randint(-5, 35), r.choice(["sunny", "cloudy", "rainy", "windy", "snowy", "foggy"])
        key = r.choice(["city", "city", "location", "place", "town"])
        name = r.choice(["get_weather", "get_weather", "get_weather", "weather", "current_weather", "get_current_weather", "weather_lookup", "getWeather"])
        props = {key: S(d("The name of the city"))}
        if r.random() < 0.25:
            props["unit"] = S(enum=["celsius", "fahrenheit"])
        q = r.choice(["What is the weather in {c}?", "What's the weather in {c}?", "What is the weather like in {c}?", "How is the weather in {c}?", "Is it raining in {c}?", "weather in {c}",
                      "Tell me the weather in {c}.", "What is the temperature in {c}?", "Do I need an umbrella in {c} today?", "What's the weather like in {c} today?", "How warm is it in {c}?"]).format(c=c)
        res = r.choice([{"temperature": t, "condition": w}, {"temperature_c": t, "condition": w}, {"temp": t, "sky": w}, {key: c, "temperature": t, "condition": w}])
        ans = r.choice([f"It is {w} in {c}, and the temperature is {t} degrees.", f"The weather in {c} is {w}, with {t} degrees.", f"In {c} it is {t} degrees and {w}."])
        return fn(name, r.choice(["Get the current weather for a city", "Get the weather in a place", "Returns the weather", "Get the current weather"]), props, [key]), q, {key: c}, res, ans, f"the weather in {c}"
    if kind == "math":
        op = r.choice(["add", "add", "multiply", "subtract"])
        a, b = r.randint(1, 99), r.randint(1, 99)
        ka, kb = r.choice([("a", "b"), ("a", "b"), ("x", "y"), ("first", "second")])
        v = {"add": a + b, "multiply": a * b, "subtract": a - b}[op]
        w = {"add": "plus", "multiply": "times", "subtract": "minus"}[op]
        q = r.choice(["What is {a} {w} {b}?", "Calculate {a} {w} {b}.", "How much is {a} {w} {b}?", "What is {a} {s} {b}?", "Use the tool to calculate {a} {w} {b}."] +
                     {"add": ["Add {a} and {b}.", "Please add {a} and {b}."], "multiply": ["Multiply {a} by {b}."], "subtract": ["Subtract {b} from {a}."]}[op])
        q = q.format(a=a, b=b, w=w, s={"add": "+", "multiply": "*", "subtract": "-"}[op])
        n = {"add": ["add", "add", "sum", "add_numbers"], "multiply": ["multiply", "multiply", "mul", "product"], "subtract": ["subtract", "minus"]}[op]
        res = r.choice([v, {"result": v}, {"value": v}])
        k = r.choice(["number", "integer"])
        return fn(r.choice(n), {"add": "Add two numbers", "multiply": "Multiply two numbers", "subtract": "Subtract two numbers"}[op], {ka: N(d("The first number"), k), kb: N(d("The second number"), k)}, [ka, kb]), \
            q, {ka: a, kb: b}, res, r.choice([f"{a} {w} {b} is {v}.", f"The result is {v}."]), f"{a} {w} {b}"
    if kind == "search":
        x = r.choice(ITEM)
        key = r.choice(["query", "query", "q", "text", "keywords"])
        props = {key: S(d("What to search for"))}
        args = {key: x}
        q = r.choice(["Search for {x}.", "Search the web for {x}.", "Please search for {x}.", "Find information about {x}.", "Look up {x}.", "Can you search for {x}?", "Look for {x} on the web."]).format(x=x)
        if r.random() < 0.25:
            props["limit"] = N(d("How many results"), "integer")
            if r.random() < 0.5:
                n = r.randint(2, 9)
                q = f"Search for {x} and give me {n} results."
                args["limit"] = n
        t = x[0].upper() + x[1:]
        res = {"results": [f"{t}: a short guide", f"All about {x}"]} if r.random() < 0.6 else {"results": [f"All about {x}"]}
        ans = f"I found {len(res['results'])} result{'s' if len(res['results']) > 1 else ''}: " + " and ".join(f'"{s}"' for s in res["results"]) + "."
        return fn(r.choice(["search", "search", "web_search", "search_web", "find"]), r.choice(["Search the web", "Search for information", "Find pages on the web"]), props, [key]), q, args, res, ans, x
    if kind == "lookup":
        n = r.choice(NAME)
        key = r.choice(["name", "name", "person", "contact"])
        num = "".join(str(r.randint(0, 9)) for _ in range(6))
        q = r.choice(["What is the phone number of {n}?", "Find the number of {n}.", "Look up {n} in my contacts.", "I need the number of {n}.", "What's {n}'s number?", "Can you look up {n}?"]).format(n=n)
        return fn(r.choice(["lookup", "lookup_contact", "get_contact", "find_person"]), r.choice(["Look up a person", "Find a contact by name"]), {key: S(d("The name of the person"))}, [key]), \
            q, {key: n}, {"name": n, "phone": num}, r.choice([f"The number of {n} is {num}.", f"{n} has the number {num}."]), f"the number of {n}"
    if kind == "time":
        c = r.choice(CITY)
        key = r.choice(["city", "timezone", "location", "place"])
        t = f"{r.randint(0, 23):02d}:{r.randint(0, 59):02d}"
        q = r.choice(["What time is it in {c}?", "Tell me the time in {c}.", "What's the time in {c}?", "Which time is it now in {c}?", "current time in {c}"]).format(c=c)
        return fn(r.choice(["get_time", "get_time", "current_time", "clock", "time_in"]), r.choice(["Get the current time in a city", "Returns the local time"]), {key: S(d("The name of the city"))}, [key]), \
            q, {key: c}, r.choice([{"time": t}, t, {key: c, "time": t}]), r.choice([f"It is {t} in {c}.", f"The time in {c} is {t}."]), f"the time in {c}"
    if kind == "note":
        x = r.choice(NOTE)
        key = r.choice(["text", "text", "content", "note", "title"])
        q = r.choice(["Make a note: {x}.", "Save a note that says {x}.", "Please write down: {x}.", "Add a note: {x}", "Note that I have to {x}.", "Remember to {x}.", "Create a note: {x}."]).format(x=x)
        return fn(r.choice(["add_note", "create_note", "save_note", "write_note"]), r.choice(["Save a note", "Create a new note"]), {key: S(d("The text of the note"))}, [key]), \
            q, {key: x}, r.choice([{"ok": True}, {"status": "saved"}, "saved"]), r.choice([f"I saved the note: {x}.", "Done, the note is saved."]), "a note"
    if kind == "remind":
        x, day, h = r.choice(NOTE), r.choice(WEEKDAY), r.randint(7, 21)
        ka, kb = r.choice([("text", "day"), ("title", "when"), ("task", "date")])
        q = r.choice([f"Remind me on {day} to {x}.", f"Set a reminder for {day}: {x}.", f"On {day} I have to {x}. Please remind me."])
        return fn(r.choice(["set_reminder", "remind", "create_reminder", "add_event"]), r.choice(["Set a reminder", "Create a reminder"]), {ka: S(d("What to remember")), kb: S(d("The day"))}, [ka, kb]), \
            q, {ka: x, kb: day}, r.choice([{"ok": True}, {"status": "created"}]), r.choice([f"I will remind you on {day} to {x}.", f"The reminder for {day} is set."]), "a reminder"
    if kind == "translate":
        x, l = r.choice(PHRASE), r.choice(LANGS)
        ka, kb = r.choice([("text", "language"), ("text", "target"), ("sentence", "to")])
        q = r.choice([f'Translate "{x}" into {l}.', f"How do you say {x} in {l}?", f'Please translate "{x}" to {l}.'])
        return fn(r.choice(["translate", "translate_text"]), "Translate a text into another language", {ka: S(d("The text")), kb: S(d("The target language"))}, [ka, kb]), \
            q, {ka: x, kb: l}, {"translation": "..."}, f"The tool gave me the translation into {l}.", f"a translation into {l}"
    if kind == "convert":
        n, a, b = r.randint(1, 500), *r.sample(CUR, 2)
        v = round(n * r.uniform(0.5, 1.9), 2)
        q = r.choice([f"Convert {n} {a} to {b}.", f"How much is {n} {a} in {b}?", f"What is {n} {a} in {b}?"])
        return fn(r.choice(["convert_currency", "convert", "exchange"]), "Convert an amount of money", {"amount": N(d("The amount")), "from": S(d("The currency")), "to": S(d("The target currency"))}, ["amount", "from", "to"]), \
            q, {"amount": n, "from": a, "to": b}, {"result": v}, f"{n} {a} is {v} {b}.", f"{n} {a} in {b}"
    if kind == "file":
        f = r.choice(["notes", "todo", "report", "letter", "plan", "readme", "data", "list"]) + r.choice([".txt", ".md", ".csv"])
        key = r.choice(["path", "filename", "file"])
        q = r.choice([f"Read the file {f}.", f"What is in {f}?", f"Open {f} and tell me what it says.", f"Show me {f}."])
        x = r.choice(NOTE)
        return fn(r.choice(["read_file", "open_file", "cat"]), "Read a text file", {key: S(d("The path of the file"))}, [key]), q, {key: f}, x, f'The file {f} says: "{x}".', f"the file {f}"
    if kind == "light":
        room, on = r.choice(["kitchen", "bedroom", "bathroom", "office", "garden", "living room"]), r.random() < 0.5
        ka, kb = r.choice([("room", "on"), ("room", "state")])
        st = on if kb == "on" else ("on" if on else "off")
        w = "on" if on else "off"
        q = r.choice([f"Turn {w} the light in the {room}.", f"Switch the {room} light {w}.", f"Please turn the light in the {room} {w}."])
        return fn(r.choice(["set_light", "switch_light", "light"]), "Switch a light on or off", {ka: S(d("The room")), kb: {"type": "boolean"} if kb == "on" else S(enum=["on", "off"])}, [ka, kb]), \
            q, {ka: room, kb: st}, {"ok": True}, f"The light in the {room} is now {w}.", f"the light in the {room}"
    raise ValueError(kind)


KINDS = "weather weather weather math math search search lookup time time note remind translate convert file light".split()
