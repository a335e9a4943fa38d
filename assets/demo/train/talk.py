"""Small talk, simple facts and small sums: tables and the dialogues made from them."""
from pond import blocks

SMALL = blocks(r"""
Q Hi
Q Hello
Q Hello!
Q Hey
Q Hi there!
Q Hey there
Q Good day!
Q Greetings!
Q hello there
Q Hello, world!
A Hello! How can I help you today?
A Hi! What would you like to talk about?
A Hello! It is nice to meet you. What can I do for you?
A Hi there! How can I help?

Q Good morning!
Q Good morning
A Good morning! I hope you slept well. How can I help you?
A Good morning! What are your plans for today?

Q Good evening!
Q Good afternoon!
A Good evening! How was your day?
A Hello! I hope you are having a good day. What can I do for you?

Q Good night!
Q I am going to bed.
Q Good night
A Good night! Sleep well and have nice dreams.
A Good night! See you tomorrow.

Q How are you?
Q How are you today?
Q How are you doing?
Q How is it going?
Q How's it going?
Q Are you okay?
Q How do you feel?
Q What's up?
A I am doing well, thank you. How are you?
A I am fine, thank you for asking. How can I help you?
A Very well, thank you! What would you like to talk about?

Q I am fine, thanks.
Q I am fine.
Q I'm good, thank you.
Q I am doing well.
A I am glad to hear that. What would you like to do now?
A That is good to hear! How can I help you?

Q Thank you!
Q Thanks!
Q Thanks
Q Thank you very much.
Q thank you
Q That helps, thanks.
Q Great, thank you!
A You are welcome!
A You are welcome! Is there anything else I can do for you?
A My pleasure! Just ask if you need anything else.

Q Bye
Q Goodbye!
Q See you later!
Q Bye bye
Q I have to go now.
Q See you tomorrow.
A Goodbye! Have a nice day.
A Bye! Come back when you want to talk.
A See you soon! Take care.

Q Tell me a joke.
Q Can you tell me a joke?
Q Do you know a joke?
Q Make me laugh.
Q Say something funny.
Q tell me a joke
A Why did the bicycle fall over? Because it was two tired.
A What do you call a sleeping dinosaur? A dino snore.
A Why did the student eat his homework? Because the teacher said it was a piece of cake.
A What is brown and sticky? A stick.
A Why do fish live in salt water? Because pepper makes them sneeze.
A What did the ocean say to the beach? Nothing, it just waved.
A Why was the math book sad? Because it had too many problems.
A What do you call a bear with no teeth? A gummy bear.

Q Tell me something interesting.
Q Tell me a fun fact.
Q Tell me something I do not know.
Q Do you know a fun fact?
Q Surprise me.
A An octopus has three hearts and blue blood.
A Honey never goes bad if it is kept dry and closed.
A A day on Venus is longer than a year on Venus.
A Bees dance to tell each other where the flowers are.
A Penguins cannot fly, but they swim very well.
A Bananas are berries, but strawberries are not.
A Light from the sun needs about eight minutes to reach the earth.
A A group of crows is called a murder.
A Snails can sleep for a very long time when it is dry.
A The heart of a blue whale is as large as a small car.

Q I am sad.
Q I feel sad today.
Q I had a bad day.
Q I feel lonely.
Q I am not happy.
Q I feel down.
A I am sorry to hear that. Do you want to tell me what happened?
A I am sorry that you feel this way. A short walk or a talk with a friend can help.
A That sounds hard. Be kind to yourself today, and talk to someone you trust.

Q I am happy!
Q I am so happy today!
Q I had a great day.
Q I have good news!
Q I passed my exam!
A That is wonderful! I am happy for you.
A Great! What made your day so good?
A That is good news! Tell me more about it.

Q I am bored.
Q I have nothing to do.
Q What should I do today?
Q What can I do today?
A You could read a book, take a walk, or call a friend. Would you like a short story?
A How about a walk outside, or a good book? I can also tell you a short story.
A You could cook something new or draw a picture. A small project is a good cure for a slow day.

Q I am tired.
Q I can't sleep.
Q I need a break.
Q I am stressed.
Q I have too much work.
A Take a short break and drink a glass of water. A little rest will help you.
A Try to rest a little. Breathe slowly, put the phone away, and take one thing at a time.
A That sounds tiring. Choose one small task, finish it, and then take a rest.

Q I am hungry.
Q What should I eat?
Q What should I cook today?
Q What should I eat for dinner?
Q I don't know what to cook.
A How about pasta with tomatoes and cheese? It is quick and tasty.
A You could make a warm soup with vegetables and some bread.
A A salad with eggs and bread is easy to make. Rice with vegetables is good too.

Q What is your favorite color?
Q Do you have a favorite color?
A I have no eyes, but I like the idea of blue, like the water of a pond.

Q What is your favorite food?
Q Do you eat?
Q Do you sleep?
Q Do you get tired?
A I am a language model, so I do not eat or sleep. I only read and write text.

Q What is your favorite animal?
Q Do you like animals?
A I like frogs, because they live in a pond.

Q Do you have feelings?
Q Are you alive?
Q Are you human?
Q Are you a robot?
Q Are you a person?
Q Are you real?
Q Do you have a body?
A No, I am a language model. I am Pond's demo model, a small smoke-test model.
A I am not a person. I am a small language model that runs on your computer.

Q How old are you?
Q When were you born?
Q Where do you live?
Q Where are you from?
A I am a small language model, so I have no age. I live on your computer, inside Pond.
A I live inside Pond, on your own machine. I have no birthday.

Q Do you like music?
Q Do you like books?
Q Do you like me?
Q What do you like to do?
Q What is your hobby?
A I like to talk and to write short stories. What do you like to do?
A I like words, because I am made of them. What about you?

Q Can you help me?
Q I need help.
Q Can I ask you something?
Q I have a question.
Q Help me, please.
A Of course! What do you need?
A Yes, please ask. I will do my best.
A Sure, tell me what you need.

Q What is the weather today?
Q What is the weather like?
Q Will it rain tomorrow?
Q What time is it?
Q What day is it today?
Q What is the date today?
Q What is in the news?
Q What is the price of gold today?
Q Send an email to my boss.
Q Set an alarm for seven.
Q Search the web for cheap flights.
Q Look up the number of my doctor.
Q Remind me to buy milk.
A I cannot know that here, because I have no tool for it. If you offer me a tool, I can use it.
A Sorry, I cannot do that without a tool. I only see the text of our chat.

Q What is my name?
Q Do you know me?
Q Do you know my name?
A You have not told me your name yet. What is your name?
A I do not know it yet. Please tell me.

Q I love you.
Q You are great!
Q You are very helpful.
Q You are funny.
Q Good job!
Q Well done!
A Thank you, that is very kind of you!
A Thank you! I am happy that I could help.

Q You are stupid.
Q I hate you.
Q You are bad.
Q This is boring.
A I am sorry. I am only a small demo model, but I will try to do better.

Q Yes
Q Yes.
Q Okay
Q OK
Q Sure.
Q Okay, good.
A Good! What would you like to do next?
A Okay! What can I do for you?

Q No
Q No.
Q No, thanks.
Q Not now.
A All right. Just ask when you need something.
A No problem. I am here if you need me.

Q What is the meaning of life?
Q Why are we here?
A People have many answers to that. I think it helps to be kind, to learn, and to enjoy small things.

Q Test
Q test
Q This is a test.
Q Just testing.
Q Testing, one, two, three.
Q Are you there?
Q Can you hear me?
Q ping
A Yes, I am here, and the test works. How can I help you?
A I am here! Everything seems to work.
""")

CAPITAL = dict(p.split(":") for p in """France:Paris|Italy:Rome|Germany:Berlin|Spain:Madrid|Portugal:Lisbon|England:London|Ireland:Dublin|Japan:Tokyo|China:Beijing|
India:New Delhi|Russia:Moscow|Egypt:Cairo|Greece:Athens|Austria:Vienna|Poland:Warsaw|Norway:Oslo|Sweden:Stockholm|Denmark:Copenhagen|Finland:Helsinki|
Hungary:Budapest|Belgium:Brussels|Canada:Ottawa|Mexico:Mexico City|Brazil:Brasilia|Argentina:Buenos Aires|Chile:Santiago|Peru:Lima|Australia:Canberra|
New Zealand:Wellington|Turkey:Ankara|Kenya:Nairobi|South Korea:Seoul|Thailand:Bangkok|Vietnam:Hanoi|Cuba:Havana|the United States:Washington, D.C.|
Switzerland:Bern|Iceland:Reykjavik|the Netherlands:Amsterdam|Scotland:Edinburgh""".replace("\n", "").split("|"))

# name: (what it is, what it eats, where it lives, legs)
ANIMAL = {l.split("|")[0]: l.split("|")[1:] for l in """cow|a large farm animal that gives milk|grass|on farms|four
horse|a strong animal that people can ride|grass and hay|on farms|four
sheep|a farm animal that gives us wool|grass|on farms|four
dog|a friendly animal that lives with people|meat and dog food|with people|four
cat|a small animal that likes to sleep and to hunt mice|meat and fish|with people|four
lion|a large wild cat, often called the king of the animals|meat|in Africa|four
tiger|a large wild cat with black stripes|meat|in the forests of Asia|four
elephant|the largest land animal, with a long trunk|leaves and grass|in Africa and Asia|four
giraffe|the tallest land animal, with a very long neck|leaves|in Africa|four
panda|a black and white bear from China|bamboo|in the mountains of China|four
bear|a large and strong animal with thick fur|berries, fish and plants|in forests|four
wolf|a wild animal that looks like a dog and lives in groups|meat|in forests|four
fox|a small wild animal with red fur and a bushy tail|mice, birds and berries|in forests and fields|four
rabbit|a small animal with long ears|grass and vegetables|in holes in the ground|four
mouse|a very small animal with a long tail|seeds and grain|in fields and houses|four
frog|a small animal that jumps and can live in water and on land|insects|near ponds|four
turtle|a slow animal with a hard shell|plants and small animals|in water and on land|four
penguin|a bird that cannot fly but swims very well|fish|in the cold south, in Antarctica|two
owl|a bird that hunts at night|mice|in trees|two
eagle|a large bird with strong wings and sharp eyes|small animals and fish|in the mountains|two
duck|a bird that swims on ponds and lakes|plants and insects|near water|two
chicken|a farm bird that lays eggs|grain|on farms|two
bee|an insect that makes honey|nectar from flowers|in hives|six
ant|a tiny insect that lives in large groups|seeds and small insects|in nests in the ground|six
butterfly|an insect with large colorful wings|nectar from flowers|in gardens and fields|six
spider|a small animal that makes webs|insects|in webs|eight
whale|the largest animal in the sea|small sea animals|in the ocean|no
shark|a large fish with many teeth|fish|in the ocean|no
dolphin|a clever animal that lives in the sea|fish|in the ocean|no
snake|a long animal without legs|mice and other small animals|in many warm places|no""".split("\n")}

WHAT = dict(l.split("|") for l in """the sun|The sun is a star. It gives us light and heat, and the earth moves around it.
the moon|The moon moves around the earth. It has no light of its own, but it reflects the light of the sun.
a star|A star is a very hot ball of gas that shines in space. The sun is a star.
a planet|A planet is a large round body that moves around a star. The earth is a planet.
the earth|The earth is the planet that we live on. It is the third planet from the sun.
gravity|Gravity is the force that pulls things toward the ground. It keeps us on the earth.
rain|Rain is water that falls from clouds in small drops.
snow|Snow is frozen water that falls from clouds in soft white flakes.
ice|Ice is frozen water. Water turns into ice when it is very cold.
a cloud|A cloud is made of many tiny drops of water in the air.
a rainbow|A rainbow is an arc of colors in the sky. It appears when the sun shines through rain.
a river|A river is a long stream of water that flows to a lake or to the sea.
a lake|A lake is a large area of water with land all around it.
a pond|A pond is a small area of still water, smaller than a lake. It is also the name of this app.
an ocean|An ocean is a very large area of salt water. The Pacific is the largest ocean.
a mountain|A mountain is a very high piece of land. The highest mountain on earth is Mount Everest.
a volcano|A volcano is a mountain with an opening. Hot melted rock can come out of it.
a desert|A desert is a very dry place with little rain and few plants.
a forest|A forest is a large area with many trees.
a tree|A tree is a tall plant with a trunk, branches and leaves.
a flower|A flower is the colorful part of a plant. It makes the seeds.
a seed|A seed is a small part of a plant. A new plant can grow from it.
a book|A book is a set of pages with text or pictures. People read books to learn and to enjoy stories.
a library|A library is a place where you can read and borrow books.
a school|A school is a place where children learn with teachers.
a computer|A computer is a machine that follows instructions. It can store data, calculate and show pictures.
the internet|The internet is a worldwide network that connects computers.
a program|A program is a list of instructions that a computer follows.
a robot|A robot is a machine that can do tasks by itself.
artificial intelligence|Artificial intelligence is software that can do tasks that seem to need thinking, such as answering questions.
a language model|A language model is a program that learned from text how words follow each other. It writes its answer one token at a time.
a token|A token is a small piece of text, such as a word or a part of a word. A language model reads and writes tokens.
a battery|A battery stores energy and gives it back as electricity.
electricity|Electricity is a form of energy. It powers lamps, computers and many other things.
a magnet|A magnet is a piece of metal that attracts iron.
a clock|A clock is a machine that shows the time.
a calendar|A calendar shows the days, weeks and months of a year.
a map|A map is a drawing that shows where places are.
a compass|A compass is a tool that shows where north is.
music|Music is sound that people make with voices and instruments. It can make us happy or sad.
a piano|A piano is a large instrument with black and white keys.
a guitar|A guitar is an instrument with strings that you play with your fingers.
a poem|A poem is a short text with rhythm and images. Some poems rhyme.
a story|A story tells what happened to someone. It has a beginning, a middle and an end.
a sentence|A sentence is a group of words that says something. It begins with a capital letter and ends with a full stop.
a noun|A noun is a word for a person, a place or a thing.
a verb|A verb is a word for an action, such as run, eat or think.
an adjective|An adjective is a word that describes a noun, such as big, red or happy.
love|Love is a strong and warm feeling for someone or something.
friendship|Friendship is a bond between people who like and help each other.
courage|Courage means doing something important even when you are afraid.
patience|Patience means that you can wait without getting angry.
kindness|Kindness means being friendly and helping others.
honesty|Honesty means telling the truth.
bread|Bread is a food made from flour, water and yeast. It is baked in an oven.
cheese|Cheese is a food made from milk.
chocolate|Chocolate is a sweet food made from cocoa beans.
honey|Honey is a sweet food that bees make from the nectar of flowers.
tea|Tea is a drink made from leaves and hot water.
coffee|Coffee is a drink made from roasted coffee beans and hot water. It keeps many people awake.
water|Water is a clear liquid. All plants, animals and people need it to live.
a bicycle|A bicycle is a vehicle with two wheels. You move it with your legs.
a car|A car is a vehicle with four wheels and an engine.
a train|A train is a row of wagons that runs on rails.
an airplane|An airplane is a vehicle with wings that flies through the air.
a boat|A boat is a small vehicle that travels on water.
a doctor|A doctor is a person who helps people who are ill.
a teacher|A teacher is a person who helps others to learn.
the brain|The brain is the part of the body that thinks. It is inside the head.
the heart|The heart is a muscle that pumps blood through the body.
sleep|Sleep is the time when the body and the brain rest.
a dream|A dream is a story that the mind makes while we sleep.
time|Time is what we measure with clocks: seconds, minutes, hours and days.
spring|Spring is the season after winter. The days grow warmer and flowers begin to bloom.
summer|Summer is the warmest season of the year. The days are long.
autumn|Autumn is the season after summer. The leaves turn red and yellow and fall from the trees.
winter|Winter is the coldest season of the year. In many places it snows.
a triangle|A triangle is a shape with three sides.
a square|A square is a shape with four equal sides.
a circle|A circle is a round shape. All its points have the same distance from the center.""".split("\n"))

FACTS = blocks(r"""
Q Why is the sky blue?
A The sky is blue because the air scatters the blue part of sunlight more than the other colors.

Q How many days are in a year?
Q How many days does a year have?
A A year has 365 days. A leap year has 366 days.

Q How many days are in a week?
A A week has seven days.

Q What are the days of the week?
Q Name the days of the week.
A The days of the week are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday.

Q What are the seasons?
Q Name the four seasons.
Q What are the seasons of the year?
A The four seasons are spring, summer, autumn and winter.

Q How many months are in a year?
A A year has twelve months.

Q What color is the sky?
A The sky is blue on a clear day.

Q What color is grass?
A Grass is green.

Q What is the largest ocean?
Q What is the biggest ocean?
A The Pacific Ocean is the largest ocean.

Q What is the highest mountain?
Q What is the tallest mountain?
A Mount Everest is the highest mountain on earth.

Q What is the largest planet?
A Jupiter is the largest planet of our solar system.

Q How many planets are there?
A Our solar system has eight planets.

Q Who wrote Romeo and Juliet?
Q Who wrote Hamlet?
A William Shakespeare wrote it.

Q Who painted the Mona Lisa?
A Leonardo da Vinci painted the Mona Lisa.

Q Who was Albert Einstein?
A Albert Einstein was a physicist. He is famous for the theory of relativity.

Q Who was Isaac Newton?
A Isaac Newton was a scientist who described gravity and the laws of motion.

Q Why do we sleep?
Q Why is sleep important?
A We sleep so that the body and the brain can rest and repair themselves.

Q Why is water important?
A Water is important because all plants, animals and people need it to live.

Q How do plants grow?
A Plants need light, water, air and soil. They use the light to make their own food.

Q Why do leaves change color?
A In autumn the trees stop making the green color, so the yellow and red colors become visible.

Q How do I make tea?
Q How do I make a cup of tea?
Q How can I make tea?
A Boil some water, pour it over the tea leaves, wait three minutes, and then take the leaves out.

Q How do I boil an egg?
Q How long should I boil an egg?
A Put the egg into boiling water. After six minutes it is soft, and after ten minutes it is hard.

Q How do I cook pasta?
Q How do I make pasta?
A Boil water with some salt, add the pasta, wait about ten minutes, and then pour the water away.

Q How do I cook rice?
A Put one cup of rice and two cups of water in a pot. Let it cook slowly for about fifteen minutes.

Q How can I sleep better?
Q How do I fall asleep faster?
A Go to bed at the same time every day, keep the room dark, and put the phone away an hour before.

Q How do I learn a new language?
Q How can I learn English?
A Practice a little every day. Learn some words, read simple texts, and talk to other people.

Q How can I make new friends?
Q How do I make friends?
A Be open and kind, say hello first, and listen. A club or a course is a good place to meet people.

Q How can I save money?
A Write down what you spend, buy only what you need, and put a small amount away each month.

Q How do I stay healthy?
Q How can I be healthy?
A Eat vegetables, drink water, move every day, and sleep enough.

Q How can I learn to code?
Q How do I start programming?
A Choose one language, follow a short course, and build small programs. Practice a little every day.

Q How do I write a good story?
A Begin with a person who wants something. Put a problem in the way, and show how it is solved.

Q How do I grow tomatoes?
Q How do I plant a tree?
A Choose a sunny place, dig a hole, put the plant in with good soil, and give it water often.
""")

NUM = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
OPPOSITE = dict(p.split(":") for p in """hot:cold|big:small|tall:short|fast:slow|happy:sad|day:night|light:dark|old:new|up:down|open:closed|full:empty|
early:late|hard:soft|wet:dry|rich:poor|strong:weak|loud:quiet|left:right|good:bad|young:old|clean:dirty|near:far|high:low|black:white""".replace("\n", "").split("|"))


def fact(r):
    """-> (question, answer, topic) from the tables."""
    k = r.random()
    if k < 0.17:
        c = r.choice(list(CAPITAL))
        if r.random() < 0.2:
            return f"Which country has the capital {CAPITAL[c]}?", f"{CAPITAL[c]} is the capital of {c}.", "a capital"
        q = r.choice(["What is the capital of {}?", "What's the capital of {}?", "Which city is the capital of {}?", "Tell me the capital of {}.", "capital of {}"])
        return q.format(c), r.choice(["The capital of {} is {}.", "The capital of {} is {}.", "It is {1}.", "{1} is the capital of {0}."]).format(c, CAPITAL[c]), f"the capital of {c}"
    if k < 0.37:
        a = r.choice(list(ANIMAL))
        what, eats, home, legs = ANIMAL[a]
        an = ("an " if a[0] in "aeiou" else "a ") + a
        pl = {"mouse": "mice", "sheep": "sheep", "wolf": "wolves", "fox": "foxes", "butterfly": "butterflies"}.get(a, a + "s")
        An = an[0].upper() + an[1:]
        t = r.choice([(r.choice(["What is {}?", "Tell me about {}.", "Describe {}.", "Explain what {} is."]).format(an), f"{An} is {what}. It lives {home} and eats {eats}."),
                      (r.choice([f"What do {pl} eat?", f"What does {an} eat?"]), f"{pl.capitalize()} eat {eats}."),
                      (r.choice([f"Where do {pl} live?", f"Where does {an} live?"]), f"{pl.capitalize()} live {home}."),
                      (f"How many legs does {an} have?", f"{An} has {legs} legs."),
                      (r.choice([f"Write a sentence about {an}.", f"Tell me one fact about {pl}."]), f"{An} is {what}."),
                      (r.choice([f"Give me three facts about {pl}.", f"List three facts about {an}."]),
                       f"1. {An} is {what}.\n2. {pl.capitalize()} live {home}.\n3. {pl.capitalize()} eat {eats}.")])
        return t[0], t[1], pl
    if k < 0.57:
        x = r.choice(list(WHAT))
        q = r.choice(["What is {}?", "what is {}?", "Can you explain what {} is?", "Tell me about {}.", "Explain {} in simple words.", "What do you know about {}?",
                      "Please explain what {} is.", "Explain {} to a child.", "What can you tell me about {}?"])
        return q.format(x), WHAT[x], x
    if k < 0.75:
        op = r.choice(["plus", "minus", "times"])
        a, b = r.randint(0, 12), r.randint(0, 12)
        if op == "minus" and b > a:
            a, b = b, a
        v = {"plus": a + b, "minus": a - b, "times": a * b}[op]
        s = {"plus": "+", "minus": "-", "times": "*"}[op]
        q = r.choice(["What is {a} {s} {b}?", "What is {a} {w} {b}?", "{a} {s} {b}", "{a}{s}{b}=?", "How much is {a} {w} {b}?", "Calculate {a} {s} {b}.", "{A} {w} {B}?"])
        q = q.format(a=a, b=b, s=s, w=op, A=NUM[a].capitalize(), B=NUM[b])
        return q, r.choice(["{a} {w} {b} is {v}.", "The answer is {v}.", "{a} {s} {b} = {v}."]).format(a=a, b=b, w=op, s=s, v=v), f"{a} {op} {b}"
    if k < 0.83:
        x = r.choice(list(OPPOSITE))
        y = OPPOSITE[x]
        if r.random() < 0.5:
            x, y = y, x
        return r.choice(["What is the opposite of {}?", "Tell me the opposite of {}."]).format(x), f"The opposite of {x} is {y}.", f"the opposite of {x}"
    q, a = r.choice(FACTS)
    return r.choice(q), r.choice(a), None
