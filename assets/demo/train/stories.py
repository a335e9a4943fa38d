"""A small story grammar: opening, a plot of several steps (one plot for each situation of prompts.py), an ending."""
from prompts import ADJ, PLACE, SITUATION, WHO, article

SHE = "Anna Mia Lily Rosa Ella Nora Clara Ruby Daisy Emma Lucy Molly Ivy Hazel Grace".split()
HE = "Tom Max Leo Finn Oscar Hugo Ben Sam Jack Felix Theo Milo Otto Will Henry".split()
FEMALE = {"queen", "princess", "witch", "girl", "grandmother", "cow"}
MALE = {"king", "prince", "knight", "fisherman", "postman", "wizard", "boy", "grandfather", "snowman"}
OPEN = """Once upon a time there was {H} named {N}.|Once there was {H} named {N} who lived {p}.|There once lived {H} called {N}.|{N} was {H} who lived {p}.|
Long ago, {H} named {N} lived {p}.|In a place {p2} lived {H} named {N}.|Once upon a time, {p}, there lived {H} named {N}.|Far away, {p}, there was {H} called {N}.""".replace("\n", "").split("|")
WHERE = """in a small village|near a quiet pond|at the edge of a forest|in a little house by the sea|on a green hill|in a big city|beside a river|in a sunny valley|
near an old mill|at the foot of a mountain""".replace("\n", "").split("|")
MOOD = """Every morning {n} looked out at the world and smiled.|Everyone knew {o} and liked {o}.|{S} had a good heart, but {s} was often alone.|{S} liked long walks and warm soup.|
Most days were quiet, and {s} liked them that way.|{S} always carried a small blue bag.|{S} loved to sing in the evening.|{S} asked many questions, and some of them were hard.|
{S} was not rich, but {s} had enough.|""".replace("\n", "").split("|")
FRIEND = "an old owl|a small mouse|a friendly frog|a kind neighbor|a little bird|a wise turtle|a young fox|an old woman|a cheerful duck|a quiet boy|a clever crow|a brown dog".split("|")
END = """From that day on, {n} was never alone again.|That night {n} fell asleep with a smile.|And {n} was happy for a long time.|{N} never forgot that day.|
After that, everyone in the village told the story of {n}.|And so {n} learned that small steps can lead far.|"{E}" {s} said, and the stars came out.|
Since then, {n} and {f} have been the best of friends.|And if you listen carefully in the evening, you can still hear {o} laugh.|It was the best day of the year.""".replace("\n", "").split("|")
SAY = "What a day!|I am glad that I tried.|Now I know what matters.|Tomorrow I will do it again.|Thank you, my friend.".split("|")

# situation: steps. {F} = "an old owl" (first mention), {f} = "the owl", {n} name, {s}/{S} he/she, {o} him/her, {d} his/her.
PLOT = {l.split(": ", 1)[0]: l.split(": ", 1)[1].split(" / ") for l in r"""finds a lost key: One day {n} found a small silver key in the grass. / {S} asked everyone in the village, but nobody had lost it. / Then {F} pointed to an old door behind the mill. / The key fit, and behind the door was a room full of books. / {N} opened the room to everyone, and soon the whole village came to read.
learns to share: {N} had a basket full of sweet apples and wanted to keep them all. / One day {F} came by and was very hungry. / At first {n} said no, but then {s} felt sad. / {S} gave half of the apples away, and they ate together under a tree. / The apples had never tasted so good.
makes a new friend: {N} had nobody to play with. / One afternoon {s} met {F} who was sitting alone on a stone. / "Would you like to play with me?" asked {n}. / {Fc} smiled and said yes. / They played until the sun went down, and they met again the next day.
is afraid of the dark: Every night {n} was afraid when the light went out. / {S} told {F} about it. / "The dark is only the day with its eyes closed," said {f}. / That night {n} looked up and saw a thousand stars. / The dark was not empty at all, and {s} was not afraid anymore.
wants to fly: {N} wanted to fly more than anything. / {S} jumped from a small hill, but {s} only fell into the soft grass. / {Fc} saw it and did not laugh. / Together they built a big kite and waited for the wind. / The kite rose high above the trees, and {n} felt as light as a cloud.
gets lost in the forest: One day {n} went into the forest and lost the way. / The trees all looked the same, and it was getting dark. / Then {s} heard a voice. It was {F}. / "Follow the stream," said {f}, "and it will lead you home." / {N} followed the stream, and soon {s} saw the lights of home.
plants a seed: One spring day {n} found a tiny seed and put it into the earth. / {S} gave it water every day, but nothing happened. / "Be patient," said {F}. / After many days a small green leaf came out of the ground. / In summer it was a tall yellow flower, and {n} was very proud.
helps a stranger: On a rainy evening {n} met {F} on the road. / {Fc} was cold and had nowhere to stay. / {N} opened the door and made a cup of hot tea. / They talked the whole evening by the fire. / In the morning the stranger was gone, but on the table lay a beautiful flower.
finds a treasure map: One day {n} found an old map in a bottle. / A red cross marked a place behind the hill. / {S} asked {F} to come along, and they dug a deep hole. / There was a box, and in the box were letters full of kind words. / It was not gold, but {n} thought that it was even better.
builds a house: {N} wanted a house of {d} own. / {S} carried stones and wood for many days, but the wall fell down. / Then {F} came and showed {o} how to put the big stones first. / They worked together until the roof was done. / On the first evening they lit a candle and ate bread and cheese in the new house.
loses a favorite hat: One windy day the wind took {d} favorite hat. / {N} ran after it, over the bridge and across the field. / At last {s} found it in a tree, and {F} was asleep in it. / {N} looked at the hat and laughed. / "Keep it," {s} said. "It is a better bed than a hat."
learns to swim: {N} lived near the water but could not swim. / {S} was afraid that the water was too deep. / {Fc} went in first and said, "I will stay beside you." / On the first day {s} only wet {d} feet, and on the third day {s} let go. / Soon {n} could swim to the other side and back.
tells the truth: One day {n} broke a blue cup by accident. / Nobody had seen it, and {s} wanted to hide the pieces. / But {d} heart felt heavy all day. / In the evening {s} told {F} the truth. / "A cup is only a cup," said {f}, "but honesty is worth much more."
tells a lie: One day {n} told everyone that {s} had seen a dragon. / The whole village ran to the hill, but there was no dragon. / The next day {s} really needed help, and nobody believed {o}. / Only {F} came, and {n} was ashamed. / {S} said sorry to everyone and promised to tell the truth.
wants to see the sea: {N} had heard of the sea but had never seen it. / One morning {s} packed some bread and started to walk. / On the way {s} met {F} who knew the road. / They walked for three days, and then the air smelled of salt. / The sea was wide and blue, and {n} stood there for a long time without a word.
climbs a tall mountain: {N} wanted to know what was on top of the mountain. / The path was steep and the wind was cold. / Half way up, {s} met {F} and they shared some bread. / "One step, and then one more," said {f}. / When they reached the top, the whole world lay below them like a map.
misses home: {N} was far away from home and missed it very much. / {S} missed the smell of bread and the sound of the clock. / {Fc} saw that {s} was sad and sat down beside {o}. / They wrote a long letter together. / A week later an answer came, and {n} read it again and again.
has a birthday: It was {d} birthday, but nobody said a word about it. / {N} thought that everyone had forgotten. / In the evening {F} asked {o} to come outside. / There were lights in the trees, and all the friends were singing. / There was a cake too, and it was the biggest cake of all.
bakes a cake: {N} wanted to bake a cake for the first time. / {S} forgot the sugar, and the first cake tasted terrible. / {Fc} tried a piece and said, "Let us try again together." / This time they read every line of the recipe. / The second cake was sweet and soft, and nothing was left of it.
finds a magic stone: By the river {n} found a stone that glowed in the dark. / {Fc} said that it could grant one wish. / {N} thought about gold and about a big castle. / But then {s} saw that the fields were dry and wished for rain. / The rain came that night, and the stone never glowed again.
cannot sleep: One night {n} could not sleep at all. / {S} counted sheep, but the sheep only made {o} laugh. / Outside sat {F} who could not sleep either. / They looked at the moon and talked about small things. / Soon both of them were asleep under the same tree.
learns to read: {N} wanted to know what was written in books. / At first the letters looked like little ants. / {Fc} taught {o} one letter every day. / After the winter {s} read a whole page without help. / It was a story about someone just like {o}.
saves the village: One night {n} saw smoke above the village. / Everyone was asleep, so {s} ran from door to door and called out loud. / {Fc} rang the big bell. / Together they carried water from the pond until the fire was out. / In the morning all the people came to say thank you.
waits for the snow: Every day {n} looked at the sky and waited for the snow. / It was cold and gray, but no snow came. / "Good things take their time," said {F}. / One morning it was very quiet, and the whole world was white. / They built a tall snowman and gave it a carrot for a nose.
meets a dragon: One day {n} walked into a cave and met a dragon. / The dragon had a deep voice, but it was crying. / "Everyone is afraid of me," it said. / {N} called {F}, and they sat down and told it a funny story. / The dragon laughed, and a warm wind blew through the cave.
crosses the river: {N} wanted to go to the other side of the river. / The water was fast and there was no bridge. / {Fc} knew a place with large flat stones. / They jumped from stone to stone, slowly and carefully. / On the other side grew the sweetest berries that {s} had ever eaten.
finds a baby bird: Under a tree {n} found a baby bird that had fallen from its nest. / {S} made a soft bed of grass and gave it some water. / {Fc} helped to look for the nest. / They found it high up in the tree and put the little bird back. / Every morning after that, the bird sang at the window.
wins a race: There was a race in the village, and {n} wanted to run too. / The others were faster and laughed at {o}. / But {n} had trained every day with {F}. / {S} did not stop, even when {d} legs were tired. / In the end {s} crossed the line first, and {f} cheered the loudest.
loses a race: {N} wanted to win the big race more than anything. / {S} ran as fast as {s} could, but three others were faster. / {S} sat down behind a tree and was very sad. / {Fc} said, "You ran faster than you did last year." / {N} thought about it, wiped {d} face, and began to smile.
learns to say sorry: One day {n} was angry and shouted at {F}. / {Fc} went away without a word. / The next day was long and quiet, and {n} felt bad. / {S} picked some flowers, knocked at the door and said, "I am sorry." / "I am glad that you came," said {f}.
hears a strange noise: One night {n} heard a strange noise from the attic. / It went tap, tap, tap, and then it stopped. / {S} took a candle and climbed the stairs with {F}. / There sat a tiny mouse that was learning to dance. / They all laughed, and the mouse gave a little show.
paints a picture: {N} wanted to paint a picture of the sunset. / But the sky changed faster than {s} could paint. / "Do not paint the sky," said {F}. "Paint how you feel." / {N} used red and gold and a little blue. / The picture hung in the town hall, and everyone who saw it felt warm.
plays music for the first time: {N} found an old violin and wanted to play it. / The first notes sounded like an angry cat. / {Fc} covered both ears but did not go away. / {N} practiced every evening for a whole year. / At the summer feast {s} played a song, and people began to dance.
goes to school for the first time: It was the first day of school, and {n} was nervous. / {S} did not know anyone there. / {Fc} sat down on the next chair and said hello. / They learned a song and shared their lunch. / When the bell rang, {n} did not want to go home.
looks for the moon: One night the moon was gone, and {n} went out to look for it. / {S} looked behind the hill and under the bridge. / {Fc} pointed to the pond. / There was the moon, round and bright in the water. / "It only came down to drink," said {n}.
gets a letter: One morning {n} got a letter without a name. / It said, "Meet me at the old bridge at noon." / {N} was curious and went there. / At the bridge stood {F} with a basket full of bread and cheese. / "I wanted to thank you for your help," said {f}.
repairs an old clock: In the middle of the village stood an old clock that had stopped. / {N} wanted to repair it, but nobody believed that {s} could. / {S} cleaned every wheel, and {F} held the lamp. / One tiny screw was missing, and they found it under the stairs. / The clock began to tick, and everyone came out to hear it.
lives on an island: {N} lived on a small island with one tree. / Sometimes {s} wondered what was behind the waves. / One day {F} arrived on a raft. / They built a boat together and sailed to the next island. / There were more islands than they could count, and each had a story.
travels to the city: {N} had never seen the city. / The streets were loud, and the houses were as tall as trees. / {S} was lost until {F} showed {o} the way. / They saw a market, a museum and a very long bridge. / In the evening {n} was tired but had a lot to tell.
discovers a secret garden: Behind an old wall {n} discovered a small green door. / It led to a garden that nobody had seen for years. / {S} and {F} pulled out the weeds and watered the roses. / In summer the garden was full of bees and colors. / They left the door open so that everyone could come in.
shares the last piece of bread: It was a hard winter, and {n} had only one piece of bread left. / Then {F} knocked at the door. / {N} broke the bread in two and gave away the larger half. / The next morning a full basket stood in front of the door. / Nobody knew who had brought it.
learns to be patient: {N} wanted everything at once. / {S} pulled at the young plants to make them grow faster, and they died. / "Some things cannot be hurried," said {F}. / So {n} planted new ones and waited. / In autumn {s} had the best carrots of the village.
wants to be bigger: {N} was small and wanted to be bigger. / {S} stood on a box, but it did not help. / One day {F} lost a ring in a narrow hole. / Only {n} was small enough to climb in and bring it back. / After that {s} was glad to be small.
has a strange dream: One night {n} dreamed that the trees could talk. / They told {o} about a spring under the hill. / In the morning {s} told {F} about it, and they went to look. / Under the hill they found clear cold water. / "Sometimes a dream knows the way," said {f}.
finds a door in a tree: One day {n} found a little door in a big tree. / {S} knocked, and {F} opened it. / Inside was a warm room with a table and two cups. / "I have been waiting for a guest," said {f}. / They drank tea and talked until it was dark.
teaches a friend to dance: {N} loved to dance, but {F} did not know how. / "I have two left feet," said {f}. / {N} counted slowly, one, two, three. / They practiced in the kitchen every evening. / At the feast they danced until the music stopped.
sails through a storm: One day {n} sailed out with {F} in a small boat. / The sky turned black, and the waves grew as high as houses. / {N} held the wheel and did not let go. / After a long night the sea became calm. / The sun came up, and the harbor was right in front of them.
keeps a promise: {N} had promised {F} to come on Sunday. / But on Sunday it rained, and the road was full of mud. / {S} put on {d} boots and walked for two hours. / {Fc} had been waiting at the window. / "I knew that you would come," said {f}.
forgets an important thing: One morning {n} knew that there was something important to do. / But {s} could not remember what it was. / {S} asked {F}, but {f} only smiled. / In the evening a cake stood on the table. / It was {d} own birthday, and {s} had forgotten it.
wishes for rain: It had not rained for a long time, and the flowers were thirsty. / {N} looked at the sky every day and wished for rain. / {Fc} helped {o} to carry water from the pond. / One evening a single cloud came over the hill. / Then it rained all night, and {n} danced in the garden.
opens a small shop: {N} opened a small shop and sold old books. / On the first day nobody came. / On the second day {F} came in and asked for a story. / {N} read it aloud, and people stopped to listen. / Soon the shop was full every afternoon.
cooks soup for everyone: It was a cold day, and everyone was hungry. / {N} had only a pot and some water. / {Fc} brought a carrot, and the others brought potatoes and salt. / The soup grew better with every visitor. / There was enough for all, and the pot was empty in the end.
looks after a younger brother: One day {n} had to look after {d} younger brother. / The little one ran away to chase a butterfly. / {N} looked everywhere and asked {F} for help. / They found him asleep in the tall grass. / {N} carried him home and held him tight.
finds an old book: In the attic {n} found an old book without a title. / The pages were empty, and {s} was disappointed. / "Then it is waiting for your story," said {F}. / So {n} began to write a little every day. / After a year the book was full, and it had a title too.
catches a falling star: One night a star fell into the pond. / {N} took a net and caught it. / The star was cold and very sad. / {S} and {F} climbed the highest hill and threw it back into the sky. / Since then one star always shines a little brighter.
makes a mistake: One day {n} made a big mistake and let the sheep run away. / {S} wanted to hide, but {s} went to {F} and told everything. / They looked for the sheep together. / By evening all of them were back. / "Everyone makes mistakes," said {f}. "Not everyone repairs them."
learns to listen: {N} loved to talk and never listened. / One day {F} tried to warn {o} about the thin ice. / {N} kept talking and fell into the cold water. / {Fc} pulled {o} out with a long branch. / From then on {n} listened first and talked later.
is not invited to the party: There was a big party, but {n} was not invited. / {S} sat alone at the pond and threw stones into the water. / Then {F} came running. / "Your letter fell behind the chair," said {f}. "We are all waiting for you!" / {N} laughed and ran, and the music began.
gives away a gift: {N} got a red scarf as a gift and loved it. / On the way home {s} saw {F} who was cold. / {N} thought for a moment and gave the scarf away. / The wind was cold, but {n} felt warm inside. / At home a new blue scarf was waiting for {o}.
sees the world from above: {N} wanted to see the world from above. / One day {F} came with a big red balloon. / They rose over the houses and over the river. / From above, the village looked like a toy. / "Everything is small from here," said {n}, "but I still want to go home."
hides from the rain: It began to rain, and {n} hid under a large leaf. / {Fc} came running and asked for a place. / The leaf was small, but they moved closer together. / They told each other stories until the rain stopped. / Then a rainbow stood over the pond.""".split("\n")}
ABOUT = {"the sea": "wants to see the sea", "the moon": "looks for the moon", "a birthday party": "has a birthday", "a paper boat": "sails through a storm", "a secret door": "finds a door in a tree",
         "a rainy day": "hides from the rain", "the first snow": "waits for the snow", "a cold winter": "shares the last piece of bread", "friendship": "makes a new friend", "a storm": "sails through a storm",
         "kindness": "gives away a gift", "courage": "is afraid of the dark", "a garden": "discovers a secret garden", "a library": "learns to read", "a rainbow": "hides from the rain",
         "a treasure": "finds a treasure map", "a broken clock": "repairs an old clock", "a bakery": "bakes a cake", "the mountains": "climbs a tall mountain", "an island": "lives on an island",
         "a big city": "travels to the city", "the forest": "gets lost in the forest", "a red balloon": "sees the world from above", "a long journey": "wants to see the sea", "a music box": "plays music for the first time",
         "hope": "wishes for rain", "the night sky": "catches a falling star", "a talking tree": "has a strange dream"}


def story(r):
    """-> (what the story is about, the story, name, situation)."""
    k = r.random()
    who, sit, place = r.choice(WHO), r.choice(SITUATION), None
    if k < 0.45:
        head = r.choice(ADJ) + " " + who if r.random() < 0.6 else who
        about = article(head) + " who " + sit
    elif k < 0.80:
        head = r.choice(ADJ) + " " + who if r.random() < 0.7 else who
        about = article(head)
    else:
        about = r.choice(list(ABOUT))
        sit = ABOUT[about]
        head = r.choice(ADJ) + " " + who
    if sit not in PLOT:
        sit = r.choice(list(PLOT))
        about = article(head)
    she = who in FEMALE or (who not in MALE and r.random() < 0.5)
    F = r.choice([f for f in FRIEND if f.split()[-1] != who])
    n = r.choice(SHE if she else HE)
    f = "the " + F.split()[-1]
    p = r.choice(WHERE)
    v = dict(H=article(head), N=n, n=n, p=p, p2=p, s="she" if she else "he", S="She" if she else "He", o="her" if she else "him", d="her" if she else "his",
             F=F, f=f, E=r.choice(SAY), Fc=None)
    out = [r.choice(OPEN[:5] + OPEN[6:]), r.choice(MOOD)]
    first = True
    text = []
    for step in PLOT[sit]:
        if "{Fc}" in step:
            fc = F if first and "{F}" not in step else f
            step = step.replace("{Fc}", fc[0].upper() + fc[1:])
            first = False
        if "{F}" in step:
            if not first:
                step = step.replace("{F}", "{f}")
            first = False
        text.append(step)
    end = r.choice([e for e in END if not (first and "{f}" in e)])
    body = [s.format(**v) for s in out + text + [end] if s]
    cut = r.choice([0, 0, 2])
    if cut:
        return about, " ".join(body[:cut + 2]) + "\n\n" + " ".join(body[cut + 2:]), n, sit
    return about, " ".join(body), n, sit


MORAL = {"learns to share": "Sharing makes good things even better.", "tells the truth": "It is better to tell the truth.", "tells a lie": "If you tell lies, people stop believing you.",
         "learns to be patient": "Good things need time.", "learns to listen": "Listen first and talk later.", "is afraid of the dark": "The dark is not as bad as we think.",
         "makes a mistake": "Everyone makes mistakes, but we should repair them.", "learns to say sorry": "It is never too late to say sorry.", "helps a stranger": "Kindness comes back to you.",
         "gives away a gift": "Giving can warm the heart."}


def follow(r, n, sit):
    """A second question about the story and its answer."""
    k = r.random()
    if k < 0.35 and sit in MORAL:
        return r.choice(["What is the moral of the story?", "What does the story teach us?", "What did we learn?"]), MORAL[sit]
    if k < 0.6:
        return r.choice(["Who is the main character?", "What is the name of the hero?", "Who is the story about?"]), r.choice([f"The main character is {n}.", f"The story is about {n}."])
    if k < 0.8:
        return r.choice(["Give the story a title.", "What is the title of the story?"]), f'"{n} ' + sit[0] + sit[1:] + '"'
    return r.choice(["Thank you!", "I like it.", "Nice story!", "That was good, thanks."]), r.choice(["You are welcome! I am glad that you like it.", "Thank you! Would you like another one?"])
