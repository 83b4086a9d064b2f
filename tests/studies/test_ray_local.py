"""A Ray that is started for this machine alone: who can reach it."""

import ipaddress
import subprocess
import sys

import pytest

# In a process of its own, because Ray reads its variables when it is imported. Prints every listening address of it.
SCRIPT = """
import os, socket, struct
from pathlib import Path
from flashbulb.studies.ray_cluster import load_ray

ray = load_ray(local=True)
ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
assert ray.get(ray.remote(lambda: 41 + 1).remote()) == 42
print("mode", os.environ["RAY_AUTH_MODE"])

def address(text):
    raw = bytes.fromhex(text)
    words = struct.pack(f"<{len(raw) // 4}I", *struct.unpack(f">{len(raw) // 4}I", raw))
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, words)

sockets = {}
for table in ("/proc/net/tcp", "/proc/net/tcp6"):
    for line in Path(table).read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A":
            sockets[f"socket:[{words[9]}]"] = address(words[1].split(":")[0])
session = ray._private.worker._global_node.get_session_dir_path()
for process in Path("/proc").glob("[0-9]*"):
    try:
        ours = int(process.name) == os.getpid() or session.encode() in (process / "environ").read_bytes()
        ours = ours or session.encode() in (process / "cmdline").read_bytes()
        links = [os.readlink(handle) for handle in (process / "fd").iterdir()] if ours else []
    except OSError:
        continue
    for link in links:
        if link in sockets:
            print("listens", sockets[link])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_it_listens_on_the_loopback_interface_only_and_asks_for_a_token():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["mode", "token"] in lines
    listening = [ipaddress.ip_address(words[1]) for words in lines if words[0] == "listens"]
    assert len(listening) >= 3  # the head's store, the node's manager, this driver
    for found in listening:
        assert (getattr(found, "ipv4_mapped", None) or found).is_loopback, found
