"""Languages as search knows them: which one a text is in, its stop words, its words' stems.

Stop words: the most frequent function words of each language, folded, kept short on purpose: they
tell languages apart, and a word that is missing here merely stays searchable. Stemmers: Snowball's.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import Stemmer

from memory.folding import folded

# In the order in which they are tried; Latin script all of them but Russian.
_STOP_WORDS = {
    "english": """
a about above after again against ago all also always am an and any anyone anything are aren't
around as at be because been before being between both but by can can't cannot could couldn't did
didn't do does doesn't doing don't down during each either else ever every everyone everything few
for from further get gets getting give given go goes going got had hadn't has hasn't have haven't
having he he'd he'll he's her here hers herself him himself his how however i i'd i'll i'm i've if
in into is isn't it it'd it'll it's its itself just let let's like likes made make makes many may
maybe me might mine more most much must my myself neither never no nor not now of off often on once
one only onto or other others our ours ourselves out over own per perhaps please quite rather
really same shall she she'd she'll she's should shouldn't since so some someone something still
such take than that that's the their theirs them themselves then there there's these they they'd
they'll they're they've this those though through thus to too toward towards under until up upon us
user user's users very want was wasn't we we'd we'll we're we've well were weren't what what's
whatever when where where's whether which while who who's whom whose why will with within without
won't would wouldn't yes yet you you'd you'll you're you've your yours yourself yourselves
""",
    "german": """
aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist da dadurch
damit dann das dass dein deine deinem deinen deiner dem den denn der des dessen dich die dies diese
diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas
euch euer eure fur gegen gibt habe haben hat hatte hatten hier hinter ich ihm ihn ihnen ihr ihre
ihrem ihren ihrer im immer in ist ja jede jedem jeden jeder jedes jetzt kann kannst kein keine
keinem keinen keiner konnen machen man mehr mein meine meinem meinen meiner mich mir mit muss
mussen nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner seit
sich sie sind so soll sondern sonst uber um und uns unser unsere unter vom von vor wann war waren
warum was weil welche welchem welchen welcher welches wem wen wenn wer werde werden wie wieder will
wir wird wo wollen wurde wurden zu zum zur zwischen nutzer nutzerin benutzer
""",
    "french": """
ai aie ait alors apres as au aucun aucune aussi autre autres aux avait avant avec avez avoir avons
c'est ca ce cela celle celui ces cet cette ceux chez combien comme comment dans de depuis des du
elle elles en encore entre es est et etaient etait etant ete etes etre eu fait font il ils j'ai je
jamais l la le les leur leurs lui ma mais me mes meme moi moins mon n'ai n'est ne ni nos notre nous
on ont ou par parce pas pendant peu peut plus pour pourquoi qu'est qu'il quand que quel quelle
quelles quels qui quoi sa sans se sera ses si son sont sous suis sur ta te tes toi ton toujours
tous tout toute toutes tres tu un une vers vos votre vous y utilisateur utilisatrice
""",
    "spanish": """
a al algo algun alguna antes aquel aquella aqui asi aun aunque cada como con cual cuales cuando
cuanto de del desde donde dos el ella ellas ellos en entre era eran eres es esa ese eso esos esta
estaba estan estar estas este esto estos estoy fue fueron fui ha habia hace hacer han hasta hay he
la las le les lo los mas me mi mientras mis mucho muy nada ni no nos nosotros nuestra nuestro o os
otra otro para pero poco por porque pues que quien quienes se sea ser si sido siempre sin sobre
solo somos son soy su sus suya suyo tambien tan tanto te tenemos tener tengo ti tiene tienen todo
todos tu tus tuvo un una unas uno unos usted va vamos voy y ya yo usuario usuaria
""",
    "italian": """
a abbiamo ad ai al alla alle allo anche ancora aveva avevo c'e che chi ci ciascuno come con cosa
cosi cui da dai dal dalla dalle degli dei del della delle dello di dopo dove e ed era erano essere
fa fare fra gia gli ha hai hanno ho i il in io la le lei li lo loro lui ma me mentre mi mia mie
miei mio molto ne negli nei nel nella nelle nello noi non nostra nostro o ogni per perche piu
poco poi prima pure qual quale quali quando quanto quella quelle quelli quello questa queste questi
questo qui sei se sempre senza si sia siamo sono sopra sta stata stati stato su sua sue sugli sui
sul sulla suo suoi tra tu tua tue tuo tuoi tutti tutto un una uno utente vi voi
""",
    "portuguese": """
a ao aos aquela aquele aquilo as ate cada com como da das de dela dele depois do dos e ela elas ele
eles em entre era essa esse esta estamos estao estava este estou eu foi foram ha isso isto ja lhe
mais mas me mesmo meu meus minha minhas muito na nao nas nem no nos nossa nosso num numa o onde os
ou para pela pelas pelo pelos por porque pra qual quais quando quanto que quem sao se seja sem ser
seu seus sob sobre somos sou sua suas so tambem tem tenho ter teu tinha toda todas todo todos tu
tua tudo um uma umas uns voce voces utilizador utilizadora usuario
""",
    "dutch": """
aan al alle alleen als altijd andere ben bij daar dan dat de deze die dit doen door dus een eens en
er ergens ge geen had hadden heb hebben hebt heeft hem het hier hij hoe hun iets ik in is ja je
jij jou jouw jullie kan kon kunnen maar me meer men met mij mijn moet moeten na naar niet niets nog
nooit nu of om omdat onder ons onze ook op over te tegen toch toen tot u uit uw van veel voor waar
waarom wanneer want waren was wat we weer welk welke wel werd wie wij wil worden wordt zal ze zelf
zich zij zijn zo zonder zou gebruiker
""",
    "swedish": """
alla allt att av bara blev bli blir da de dem den denna deras dess det detta dig din dina ditt du
efter ej eller en er ett fran for ha hade han hans har har henne hennes hon honom hur i icke inom
inte jag ju kan kunde man med mellan men mig min mina mitt mot mycket nar nagon nagot ni nu och om
oss pa samma sedan sig sin sina sitt ska skulle som sa till under upp ut utan vad var vara varfor
varit varje vem vi vid vilka vilken vilket vilja ar aven over anvandaren
""",
    "danish": """
af alle alt at blev blive bliver da de dem den denne der deres det dette dig din dit dog du efter
ej eller en er et for fordi fra ham han hans har havde have hende hendes her hos hun hvad hvem
hvilken hvilket hvis hvor hvordan hvornar hvorfor i ikke ind ingen jeg jer jo kan kun kunne man
mange med meget men mig min mine mit mod ned noget nogle nu nar og ogsa om op os over pa sa selv
sig sin sine sit skal skulle som til ud under var ved vi vil ville vore vaeret vaere bruger
""",
    "norwegian": """
alle at av bare ble bli blir da de deg dem den denne der dere deres det dette di din ditt du eller
en enn er et etter for fordi fra ha hadde han hans har hennes her hun hva hvem hvilken hvilket hvis
hvor hvordan hvorfor i ikke inn jeg kan kun kunne man mange med meg men mer min mine mitt mot mye
ned noe noen nar nå og ogsa om opp oss over pa sa seg selv sin sine sitt skal skulle slik som til
ut under var vart ved vi vil ville var vore vaere vaert brukeren
""",
    "finnish": """
ei eika ele eli emme en enka et etta he hei hen han hanen heidan ihan itse ja jo joka jos jossa
jotka jota jotain kai kaikki kanssa kautta keta ketka kuin kuinka kuka kun kuten koska me meidan
mika mikä mihin miksi milloin mina minun minulla minut minulle missa mista mita mitka mutta myos
nain ne niiden niin noin nyt oli olen olet olisi olivat ollut olla olemme on ovat sa se sen sina
sinun sinulla sita siella siis sitten tai tama taman te teidan tuo vaan vai vain voi kayttaja
""",
    "polish": """
a ale albo bardzo bez bo by byc byl byla bylo byly ci co czy czego dla dlaczego do gdy gdzie go i
ich ile im inny ja jak jaka jaki jakie jako jego jej jest jestem jestes jeszcze jesli juz kazdy kto
ktora ktore ktory kiedy lub ma mam masz mi mial mnie moj moja moje moze mozna mu my na nad nam nas
nasz nic nie niego niej niz o od on ona one oni ono oraz po pod poniewaz przed przez przy sa sie
swoj ta tak takie tam te tego tej ten to tu twoj twoja ty tych tylko tym u w was we wiec wszystko z
za ze uzytkownik
""",
    "turkish": """
acaba ama ancak artik aslinda az bana bazi belki ben benden beni benim bile bir biraz bircok biri
biz bizim bu bunu bunun burada cok cunku da daha de defa degil diye eger en evet gibi gore hangi
hem hep hepsi her herkes hic icin ile ise kadar kendi ki kim kimin mi mu nasil ne neden nerede
niye o olan olarak oldu olur ona onlar onu onun oysa sana sanki sen seni senin siz su sonra tum ve
veya var vardi yani yok zaten kullanici
""",
    "russian": """
а без бы был была были было в вам вас весь во вот все всегда всего вы где да даже для до его ее
если есть еще же за здесь и из или им их к как какая какие какой когда кого который кто ли лишь
меня мне много может мои мой моя мы на над надо нам нас наш не него нее нет ни них но ну о об один
она они оно от очень по под потому почему при про раз с сам свой себя сейчас со так также там тебя
тем то тобой тогда того тоже только том ты у уже хотя чего чем через что чтобы чья эта эти это этот
я пользователь
""",
}
STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(folded(words).split()) for language, words in _STOP_WORDS.items()
}
ANY_STOP_WORD = frozenset().union(*STOP_WORDS.values())
_LATIN = tuple(language for language in STOP_WORDS if language != "russian")
# One language for each other script that Snowball has a stemmer for: first letter, last letter.
_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0590", "\u05ff", "yiddish"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_LAST_LATIN = "\u024f"

# A word of a text in no known language is indexed by its stems in all of these: each stem is one
# more row, so they are few. They are the languages that people write most.
UNSURE = ("english", "german", "french", "spanish", "portuguese")

SURE = 2  # stop words
LONGEST_STEMMED = 40  # what is longer is no word, and stemming it would fill the cache


def languages_of(words: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Return the languages that the folded words may be in, by their stop words, and if it is sure.

    Several when as many words speak for each of them, none when no word speaks for any. One word is
    not enough to be sure: `dog` is a stop word of Danish, `hat` of German.
    """
    counts = Counter(word for word in words if word in ANY_STOP_WORD)
    hits = {
        language: sum(counts[word] for word in counts.keys() & stop_words)
        for language, stop_words in STOP_WORDS.items()
    }
    most = max(hits.values())
    languages = tuple(language for language in hits if hits[language] == most) if most else ()
    return languages, most >= SURE


def stop_words_of(languages: Iterable[str]) -> frozenset[str]:
    """Return the stop words of all these languages."""
    return frozenset().union(*(STOP_WORDS[language] for language in languages))


def stems(word: str, languages: Iterable[str]) -> list[str]:
    """Return the folded stems of a lower-case word in each of the languages, each stem once.

    A word in a script that one stemmer stands for has that one's stem, whatever the languages.
    """
    if len(word) > LONGEST_STEMMED or not word.isalpha():
        return [folded(word)]
    return list(_stems(word, tuple(languages)))


@lru_cache(maxsize=50_000)
def _stems(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    first = word[0]
    if first <= _LAST_LATIN:  # accents off first: `Größe` and `grosse`, `café` and `cafe` are one
        plain = folded(word)
        return tuple(dict.fromkeys(_stem(language, plain) for language in languages)) or (plain,)
    for lowest, highest, language in _SCRIPTS:
        if lowest <= first <= highest:
            return (folded(_stem(language, word)),)
    return (folded(word),)


def every_latin() -> tuple[str, ...]:
    """Return all the languages in Latin script."""
    return _LATIN


_stemmers: dict[str, Stemmer.Stemmer] = {}
_one_at_a_time = threading.Lock()  # a stemmer keeps state and is not for two threads


def _stem(language: str, word: str) -> str:
    with _one_at_a_time:
        if language not in _stemmers:
            _stemmers[language] = Stemmer.Stemmer(language, 0)
        return str(_stemmers[language].stemWord(word))
