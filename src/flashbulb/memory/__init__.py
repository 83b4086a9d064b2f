"""The paper's idea: flashbulb memory, intrinsic cost, balancing factor. Knows nothing of optimisers or runs."""

from flashbulb.memory.balance import Balance
from flashbulb.memory.flashbulb import FlashbulbMemory
from flashbulb.memory.intrinsic import anticipation
from flashbulb.memory.streams import CostStream, Lesson, stream_for, unsafe_states

__all__ = ["Balance", "CostStream", "FlashbulbMemory", "Lesson", "anticipation", "stream_for", "unsafe_states"]
