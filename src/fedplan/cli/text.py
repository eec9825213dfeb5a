"""Text: numbers as commands print them, for commands of other packages."""

from fedplan.words import amount as amount
from fedplan.words import joules as joules
from fedplan.words import seconds as seconds
