"""Words that say nothing by themselves, folded, of the languages that the gate knows."""

_WORDS = """
a about above after again all also always am an and any are aren't as at be because been before
being below between both but by can can't cannot could couldn't did didn't do does doesn't doing
don't down during each ever few for from further get gets got had hadn't has hasn't have haven't
having he her here hers herself him himself his how i i'd i'll i'm i've if in into is isn't it
it's its itself just let's like likes make me more most my myself no nor not now of off on once
only or other our ours ourselves out over own person please really same she should so some such
than that that's the their theirs them themselves then there these they this those through to
too under until up us user user's users very was we were what when where which while who whom
why will with would you your yours yourself yourselves der die das dem den des ein eine einem
einen einer eines und oder aber nicht kein keine keinen ich mich mir mein meine meinen meiner
meinem du dich dir dein deine er sie es wir uns ihr euch ist bin bist sind war waren sein hat
habe haben hatte wird werden mit von zu zum zur im auf aus bei fur als auch noch nur schon wie
wer wo wann warum dass wenn nutzer nutzerin benutzer le la les un une de et ou mais ne pas je
moi mon ma mes tu te toi ton ta tes il elle nous vous ils elles est suis sommes sont ete avoir
ai ont avec pour par sur dans en que qui quoi quand l'utilisateur l'utilisatrice utilisateur
utilisatrice el los las una unos unas y o pero yo mi mis tus su sus soy eres somos son estoy
esta con para por quien como cuando donde usuario usuaria lo gli uno e non io mio mia miei mie
sono sei siamo per che chi come quando dove utente l'utente os um uma mas nao eu meu minha meus
minhas sou sao com quem utilizador utilizadora het een maar niet geen ik mij mijn jij hij zij
wij ben zijn met van voor op gebruiker
"""
STOP_WORDS = frozenset(_WORDS.split())
