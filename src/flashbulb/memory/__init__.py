"""The paper's idea: flashbulb memory, intrinsic cost, balancing factor. Knows nothing of optimisers or runs."""

from flashbulb.memory.balance import Balance
from flashbulb.memory.cost_streams import CostStream, MemoryInput, stream_for, unsafe_states
from flashbulb.memory.flashbulb_memory import FlashbulbMemory
from flashbulb.memory.intrinsic_cost import anticipation

__all__ = ["Balance", "CostStream", "FlashbulbMemory", "MemoryInput", "anticipation", "stream_for", "unsafe_states"]
