"""Prompts for the teacher. Each has the text the teacher reads and the text the student will be trained on.

prompts(n, seed) -> list of Prompt. Deterministic: the teacher's answers are stored by index into this list.
"""
import random
from dataclasses import dataclass, field


@dataclass
class Prompt:
    kind: str                                  # story, what, how, advice, talk, list, essay, free
    system: str                                # the teacher's system text
    teacher: list                              # the teacher's user turns; "" = the teacher writes the question itself
    student: list = field(default_factory=list)  # the student's user turns, as many


ADJ = """little old young tiny brave shy lazy clever curious kind lonely happy sad hungry sleepy proud gentle clumsy grumpy
noisy quiet wise silly busy friendly careful stubborn honest playful fearless forgetful cheerful""".split()
WHO = """cat|dog|fox|rabbit|mouse|bear|owl|turtle|frog|duck|horse|elephant|lion|monkey|penguin|whale|squirrel|hedgehog|sheep|cow|pig|goat|
wolf|bee|ant|snail|butterfly|spider|crow|parrot|dragon|robot|giant|king|queen|prince|princess|knight|farmer|baker|sailor|fisherman|gardener|
teacher|painter|musician|doctor|librarian|clockmaker|tailor|pirate|wizard|witch|ghost|snowman|girl|boy|grandmother|grandfather|child|
shepherd|carpenter|astronaut|scientist|postman|train driver|lighthouse keeper|star|cloud|river|tree|kite|toy|teapot|boat|train|car|lamp|clock""".replace("\n", "").split("|")
SITUATION = """finds a lost key|learns to share|makes a new friend|is afraid of the dark|wants to fly|gets lost in the forest|plants a seed|
helps a stranger|finds a treasure map|builds a house|loses a favorite hat|learns to swim|tells the truth|tells a lie|wants to see the sea|
climbs a tall mountain|misses home|has a birthday|bakes a cake|finds a magic stone|cannot sleep|learns to read|saves the village|
waits for the snow|meets a dragon|crosses the river|finds a baby bird|wins a race|loses a race|learns to say sorry|hears a strange noise|
paints a picture|plays music for the first time|goes to school for the first time|looks for the moon|gets a letter|repairs an old clock|
lives on an island|travels to the city|discovers a secret garden|shares the last piece of bread|learns to be patient|wants to be bigger|
has a strange dream|finds a door in a tree|teaches a friend to dance|sails through a storm|keeps a promise|forgets an important thing|
wishes for rain|opens a small shop|cooks soup for everyone|looks after a younger brother|finds an old book|catches a falling star|
makes a mistake|learns to listen|is not invited to the party|gives away a gift|sees the world from above|hides from the rain""".replace("\n", "").split("|")
PLACE = """the sea|a small village|the forest|a big city|the moon|a rainy day|a cold winter|a hot summer|the desert|an old castle|a farm|a garden|
a train station|a library|the mountains|an island|a market|a school|a lighthouse|a bakery|the night sky|friendship|kindness|courage|hope|
a lost toy|a magic pencil|a broken clock|two brothers|two sisters|three friends|a birthday party|a long journey|the first snow|a red balloon|
a talking tree|an empty house|a music box|a secret door|a paper boat|a rainbow|a storm|a picnic|a treasure|a time machine|space travel""".replace("\n", "").split("|")
NOUN = """the sun|the moon|a star|a planet|gravity|light|sound|heat|water|ice|rain|snow|wind|a cloud|a storm|lightning|a volcano|an earthquake|
a river|a lake|an ocean|an island|a mountain|a forest|a desert|a tree|a flower|a leaf|a root|a seed|grass|a mushroom|a bee|an ant|a butterfly|
a spider|a fish|a shark|a whale|a dolphin|an octopus|a frog|a snake|a turtle|a bird|an eagle|an owl|a penguin|a chicken|a duck|a horse|a cow|
a pig|a sheep|a goat|a dog|a cat|a rabbit|a mouse|a lion|a tiger|an elephant|a giraffe|a monkey|a bear|a wolf|a fox|a kangaroo|a dinosaur|
an apple|a banana|an orange|a tomato|a potato|bread|cheese|milk|butter|an egg|rice|pasta|soup|salad|chocolate|honey|sugar|salt|coffee|tea|
a house|a bridge|a road|a train|a car|a bicycle|an airplane|a boat|a ship|a rocket|a telescope|a microscope|a computer|a keyboard|a phone|
the internet|a website|an email|a program|a robot|artificial intelligence|a language model|a battery|electricity|a magnet|a clock|a calendar|
a map|a compass|a book|a library|a newspaper|a letter|a pencil|paper|a painting|a song|a piano|a guitar|a violin|a drum|music|a dance|a poem|
a novel|a movie|a game|chess|football|basketball|tennis|swimming|running|yoga|sleep|a dream|memory|the brain|the heart|the lungs|the skin|
blood|a bone|a muscle|a tooth|an eye|an ear|a doctor|a nurse|a teacher|a farmer|a scientist|an engineer|a judge|a king|a president|a city|
a village|a country|a school|a university|a hospital|a museum|a market|a bank|money|a job|a family|a friend|love|happiness|anger|fear|hope|
courage|patience|kindness|honesty|history|geography|mathematics|biology|chemistry|physics|astronomy|philosophy|language|grammar|a noun|a verb|
an adjective|a sentence|a story|a number|addition|multiplication|a fraction|a triangle|a circle|a square|a cube|time|a year|a season|spring|
summer|autumn|winter|Paris|London|New York|Tokyo|Rome|Egypt|Italy|France|Japan|China|India|Brazil|Africa|Europe|Asia|Australia|Antarctica|
a glacier|the Amazon rainforest|a coral reef|recycling|solar energy|wind power|pollution|a vaccine|a virus|bacteria|a cell|DNA|evolution|
photosynthesis|the water cycle|the seasons|an eclipse|the Milky Way|a black hole|a comet|a satellite|oxygen|carbon|iron|gold|silver|glass|
plastic|wood|cotton|wool|a wheel|an engine|a camera|a radio|a television|a refrigerator|a microwave|a washing machine|a lamp|a candle""".replace("\n", "").split("|")
TASK = """make a cup of tea|boil an egg|bake bread|cook rice|make a salad|make pancakes|make soup|cook pasta|wash my hands|brush my teeth|
fall asleep faster|wake up early|learn a new language|study for an exam|read more books|write a letter|write a poem|write a good story|
make new friends|say sorry|say no politely|stay calm|stop worrying|save money|plan a trip|pack a suitcase|clean my room|wash clothes|
plant a tree|grow tomatoes|take care of a dog|take care of a cat|ride a bicycle|swim better|run faster|lose weight|eat healthy food|
drink more water|learn to draw|paint a wall|learn the piano|learn to code|fix a flat tire|use a map|find a job|prepare for an interview|
write an email|give a speech|tell a joke|remember names|manage my time|be more patient|be a good friend|help my neighbor|choose a gift|
plan a birthday party|build a birdhouse|fly a kite|make a paper boat|take good photos|keep a diary|learn to cook|be happier|relax after work|
get better at math|learn history|improve my writing|speak with confidence|protect the environment|save energy at home|keep plants alive|
clean a window|fold a shirt|iron a shirt|sharpen a pencil|train for a race|start a garden|make coffee|bake a cake|set a goal|break a bad habit""".replace("\n", "").split("|")
FEEL = """I feel sad today.|I am so happy today!|I am bored.|I am tired.|I can't sleep.|I had a bad day.|I had a great day.|I am nervous about my exam.|
I lost my keys.|I miss my friend.|It is raining here.|It is very hot today.|I am hungry.|I don't know what to cook.|My cat is sick.|
I got a new dog!|I am going on a trip tomorrow.|I love reading books.|I love music.|I like to walk in the park.|I am learning to cook.|
I am learning English.|I want to learn the guitar.|I have a test tomorrow.|I finished my work.|I have too much work.|My friend is angry with me.|
I made a mistake.|I feel lonely.|I am proud of my sister.|I want to change my job.|I moved to a new city.|I saw a beautiful bird today.|
I planted some flowers.|I am reading a good book.|I want to be a better person.|I am afraid of flying.|I broke my favorite cup.|
Today is my birthday.|I am thinking about my future.|I can't decide what to do.|I need some advice.|I want to start running.|I like the winter.|
I like the sea.|My grandmother is visiting us.|I am waiting for the bus.|I am drinking coffee.|I just woke up.|I am going to bed.""".replace("\n", "").split("|")
TALK = """What do you like to do?|What is your favorite color?|What is your favorite book?|What is your favorite animal?|Do you like music?|
Can you tell me a joke?|Tell me something interesting.|Tell me a fun fact.|What should I do today?|What should I eat for dinner?|
What is the best season?|Do you have friends?|Are you happy?|What makes you happy?|Can you help me?|What can you do?|
Can you give me some advice?|What is the meaning of life?|Why is the sky blue?|Why do we sleep?|Why do we dream?|Why is the sea salty?|
Why do birds sing?|Why do cats purr?|Why do leaves change color?|Why is water important?|Why do we laugh?|Why is reading good for us?|
How does a plane fly?|How does a bicycle work?|How do plants grow?|How do fish breathe?|How do bees make honey?|How far is the moon?|
How big is the sun?|How many days are in a year?|How many legs does a spider have?|What do pandas eat?|What do cows eat?|Where do penguins live?|
Where does rain come from?|What color is the sky?|What is the capital of France?|What is the capital of Italy?|What is the largest ocean?|
What is the tallest mountain?|Who wrote Romeo and Juliet?|Who was Albert Einstein?|Who was Isaac Newton?|Who painted the Mona Lisa?|
What is two plus two?|What is ten minus three?|What is five times six?|What comes after Monday?|What are the seasons of the year?""".replace("\n", "").split("|")
FOLLOW = """Thank you!|Thanks, that helps.|Can you say that more simply?|Can you give me an example?|Why is that important?|Tell me more.|
Can you explain that in one sentence?|That is interesting. What else should I know?|Is that always true?|How do you know that?|
What should I do next?|What happens after that?|Who told you that?|I did not understand. Can you try again?|Great, thank you very much.|
What is the most important part?|Can you give me one more tip?|How long does it take?|Is it difficult?|Can children do it too?""".replace("\n", "").split("|")
STORY_FOLLOW = """What is the moral of the story?|Who is the main character?|What happens next?|Give the story a title.|Can you tell me another one?|
Why did that happen?|I like it. Thank you!|Can you make it shorter?|How does the story end?|What did they learn?""".replace("\n", "").split("|")
STORY_ASK = """Write a short story about {x}.|Write a short story about {x}|write a short story about {x}|Tell me a story about {x}.|
Tell me a short story about {x}.|Can you write a short story about {x}?|Please write a story about {x}.|Can you tell me a story about {x}?|
I would like to hear a story about {x}.|Write a little story about {x}.|Make up a story about {x}.|Write a very short story about {x}.|
Please write a short story about {x}.|write a story about {x}|Write me a short story about {x}.|Write a bedtime story about {x}.""".replace("\n", "").split("|")
WHAT_ASK = """What is {x}?|what is {x}?|Can you explain what {x} is?|Tell me about {x}.|Please explain what {x} is.|Explain {x} in simple words.|
What can you tell me about {x}?|Describe {x}.|I want to know what {x} is.|What is {x}? Please answer in one or two sentences.""".replace("\n", "").split("|")
HOW_ASK = """How do I {x}?|how do I {x}?|How can I {x}?|Can you help me {x}?|I want to {x}. What should I do?|Please tell me how to {x}.|
What is the best way to {x}?|Explain how to {x}.|Give me some tips to {x}.|Can you tell me how to {x}?""".replace("\n", "").split("|")
LIST_ASK = """Give me three facts about {x}.|List three things about {x}.|Tell me a fun fact about {x}.|Name a few facts about {x}.|
Give me two interesting facts about {x}.|Write one sentence about {x}.|Write two sentences about {x}.""".replace("\n", "").split("|")
ESSAY_ASK = """Write a paragraph about {x}.|Write a short text about {x}.|Describe {x} to a child.|Write a short paragraph about {x}.|
Explain {x} to a five year old.|Write a few sentences about {x}.""".replace("\n", "").split("|")

SHORT = "You are a kind and helpful assistant. Answer in simple English, in one to three short sentences."
MEDIUM = "You are a kind and helpful assistant. Answer in simple, clear English. Keep the answer short."
STORY = "You write short stories in simple English, with short sentences and a clear ending."


def article(s):
    return ("an " if s[0] in "aeiou" else "a ") + s


def subject(r):
    who = r.choice(WHO)
    k = r.random()
    if k < 0.30:
        return article(r.choice(ADJ) + " " + who)
    if k < 0.75:
        head = r.choice(ADJ) + " " + who if r.random() < 0.6 else who
        return article(head) + " who " + r.choice(SITUATION)
    if k < 0.85:
        return r.choice(PLACE)
    if k < 0.93:
        return article(who) + " and " + article(r.choice(WHO))
    return article(who) + " in " + r.choice(PLACE[:21])


def one(r):
    k = r.random()
    if k < 0.42:
        x = subject(r)
        ask = r.choice(STORY_ASK).format(x=x)
        teach = r.choice(["Write a short story about {x} in about 100 words.", "Write a very short story about {x}. Use simple words.",
                          "Tell a short story about {x} in eight sentences.", "Write a short story about {x}."]).format(x=x)
        t, s = [teach], [ask]
        if r.random() < 0.10:
            f = r.choice(STORY_FOLLOW)
            t.append(f)
            s.append(f)
        return Prompt("story", STORY, t, s)
    if k < 0.62:
        kind, asks, things = r.choice([("what", WHAT_ASK, NOUN), ("what", WHAT_ASK, NOUN), ("list", LIST_ASK, NOUN), ("essay", ESSAY_ASK, NOUN)])
        ask = r.choice(asks).format(x=r.choice(things))
        t = [ask[0].upper() + ask[1:]]
        s = [ask]
        if r.random() < 0.35:
            t.append(r.choice(FOLLOW))
            s.append(t[-1])
        return Prompt(kind, SHORT if kind != "essay" else MEDIUM, t, s)
    if k < 0.74:
        ask = r.choice(HOW_ASK).format(x=r.choice(TASK))
        t = [ask[0].upper() + ask[1:]]
        s = [ask]
        if r.random() < 0.35:
            t.append(r.choice(FOLLOW))
            s.append(t[-1])
        return Prompt("how", SHORT if r.random() < 0.6 else MEDIUM, t, s)
    if k < 0.86:
        kind, ask = r.choice([("advice", r.choice(FEEL)), ("talk", r.choice(TALK))])
        t, s = [ask], [ask]
        if r.random() < 0.5:
            t.append(r.choice(FEEL + FOLLOW + TALK + FOLLOW))
            s.append(t[-1])
        return Prompt(kind, SHORT, t, s)
    return Prompt("free", r.choice([SHORT, MEDIUM, MEDIUM]), [""], [""])


def prompts(n, seed=1):
    r = random.Random(seed)
    return [one(r) for _ in range(n)]
