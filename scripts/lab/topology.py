"""PCIe trees with NUMA nodes, switches and NICs below them."""
from errors import LabError


class Topology:
    nics = ()


def load(name):
    raise LabError(f"--topology {name}: not there", "leave it out")
