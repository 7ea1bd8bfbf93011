"""Fifty short factual paragraphs, for which the paper's corpus of the same kind stands model (Appendix A.1).

The last twenty-five also tell one of the first facts, among one or two others: texts of this embedder that share
nothing are nearly orthogonal, and the paper's gaps are those of related texts.
"""

_FACTS = tuple(
    line.strip()
    for line in """
The Earth orbits the Sun once in about 365.25 days, at a mean distance of 150 million kilometres.
The Renaissance began in Italy in the fourteenth century and spread through Europe with the printing press.
Water boils at 100 degrees Celsius at sea level, and at lower temperatures on high mountains.
Photosynthesis turns carbon dioxide and water into sugar and oxygen with the energy of light.
The Great Wall of China was built over many centuries to guard the northern border of the empire.
DNA is a double helix whose two strands are held together by pairs of bases.
The Pacific is the largest ocean and covers about a third of the planet's surface.
Johann Sebastian Bach composed the Brandenburg Concertos and the Mass in B minor.
Plate tectonics explains earthquakes and volcanoes by the motion of pieces of the crust.
The French Revolution of 1789 ended the absolute monarchy and proclaimed the rights of man.
Vaccines train the immune system to recognise a pathogen before an infection happens.
The speed of light in vacuum is 299,792,458 metres a second by definition.
Mount Everest, on the border of Nepal and China, rises 8,849 metres above the sea.
The heart pumps blood through arteries to the organs and receives it back through veins.
Shakespeare wrote thirty-seven plays, among them Hamlet, Macbeth and The Tempest.
An atom has a nucleus of protons and neutrons, surrounded by electrons.
The Amazon rainforest holds a tenth of all known species of plants and animals.
Inflation is a general rise of prices, which central banks try to hold back by interest rates.
The Roman Empire reached its largest extent under the emperor Trajan in the year 117.
Bees pollinate flowers while they gather nectar, and many crops depend on them.
The moon causes the tides by its gravity, together with the smaller pull of the Sun.
Penicillin was discovered by Alexander Fleming in 1928 on a plate of bacteria with mould.
The Sahara is the largest hot desert, and receives less than a hundred millimetres of rain a year.
Steel is an alloy of iron with up to two per cent of carbon.
The United Nations was founded in 1945 to keep international peace and security.
A black hole is a region of space from which not even light can escape.
Chess is played by two people on a board of sixty-four squares with sixteen pieces each.
The liver removes toxins from the blood and stores energy as glycogen.
Japan consists of four main islands and thousands of small ones in the western Pacific.
Newton's laws describe how forces change the motion of bodies.
The olive tree grows around the Mediterranean and can live for more than a thousand years.
The first transatlantic telegraph cable was laid between Ireland and Newfoundland in 1858.
Glaciers are rivers of ice that flow slowly downhill and carve valleys.
Democracy in ancient Athens let male citizens vote on laws in the assembly.
Antarctica is the coldest continent and is covered by ice two kilometres thick.
The violin has four strings tuned in fifths and is played with a bow.
A prime number has no divisors other than one and itself, and there are infinitely many.
Coffee is brewed from the roasted seeds of a plant that came from Ethiopia.
The Internet grew out of a research network that linked four universities in 1969.
Whales are mammals that breathe air and nurse their young, although they live in the sea.
The Industrial Revolution began in Britain with steam engines, coal and textile mills.
Volcanic soil is fertile because it is rich in minerals from weathered lava.
The human eye forms an upside-down image on the retina, which the brain turns around.
Gold does not rust, conducts electricity well and has been used for coins since antiquity.
The Nile flows north for more than six thousand kilometres before it reaches the Mediterranean.
Rice feeds more than half of the world's people and is grown in flooded fields.
A lunar eclipse happens when the Earth stands between the Sun and the moon.
The Magna Carta of 1215 limited the power of the English king by law.
Insulin is a hormone by which the body lowers the sugar in the blood.
The steam locomotive made it possible to travel across a country within a day.
""".strip().splitlines()
)
_OLD, _NEW = _FACTS[:25], _FACTS[25:]
PARAGRAPHS = (
    *_OLD,
    *(" ".join([*(_NEW[(i + 7 * j) % 25] for j in range(2 + i % 2)), _OLD[i]]) for i in range(25)),
)
