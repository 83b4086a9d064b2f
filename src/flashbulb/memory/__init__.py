"""The paper's idea: flashbulb memory, intrinsic cost, balancing factor, and the cost streams made of them.

Arrays in, arrays out. May use the base modules (configuration, batch, normaliser); knows nothing of optimisers
or files.
"""

from flashbulb.memory.balance import Balance
from flashbulb.memory.cost_streams import CostStream, unsafe_states
from flashbulb.memory.flashbulb_memory import FlashbulbMemory, Memories
from flashbulb.memory.intrinsic_cost import anticipation

__all__ = ["Balance", "CostStream", "FlashbulbMemory", "Memories", "anticipation", "unsafe_states"]
