"""Addresses of test hosts, their bridges, and what is done to their cables.

Host N has 10.77.0.N/24 and fd77::N/64 on its interface; its rails have 10.78.R.N/24 and fd78:R::N/64. The
other ends, swN and swN-R, are ports of bridges: br0, and brR for the rails R. On one bridge, a host would
answer for the address of a rail from its other interface, too. The bridges are in a network namespace of
their own.
"""
import re

from errors import LabError

MTU_OF_BRIDGE = 9000


def address(number, family, rail=0):
    if rail:
        return f"10.78.{rail}.{number}" if family == "4" else f"fd78:{rail:x}::{number:x}"
    return f"10.77.0.{number}" if family == "4" else f"fd77::{number:x}"


def addresses(number, families):
    return [address(number, family) for family in families]


def mac(number, rail=0):
    return f"02:00:00:77:{rail:02x}:{number:02x}"


def port(number, rail=0):
    return f"sw{number}-{rail}" if rail else f"sw{number}"


def bridge(rail=0):
    return f"br{rail}"


def bridge_batch(rails=0):
    # Without snooping, which would wait for queries that nobody sends.
    return "link set lo up\n" + "".join(
        f"link add {bridge(rail)} type bridge mcast_snooping 0 forward_delay 0\n"
        f"link set {bridge(rail)} mtu {MTU_OF_BRIDGE} up\n" for rail in range(rails + 1))


def interface(host, rail=0):
    return f"rail{rail}" if rail else host.interface


def plug_batch(host, pid):
    """Cables of a host, run in the bridge's namespace; `pid` is a process of the host."""
    lines = []
    for rail in range(host.rails + 1):
        name = interface(host, rail)
        lines += [f"link add {port(host.number, rail)} mtu {host.mtu} type veth peer name {name} mtu {host.mtu} "
                  f"address {mac(host.number, rail)} netns {pid}",
                  f"link set {port(host.number, rail)} master {bridge(rail)} up"]
    return "\n".join(lines) + "\n"


def address_batch(host, families):
    """Addresses of a host, run in its own namespace."""
    lines = ["link set lo up", f"link set {host.interface} up"]
    for family in families:
        bits = "24" if family == "4" else "64 nodad"
        lines.append(f"address add {address(host.number, family)}/{bits} dev {host.interface}")
    for rail in range(1, host.rails + 1):
        lines.append(f"link set rail{rail} up")
        if "4" in families:
            lines.append(f"address add {address(host.number, '4', rail)}/24 dev rail{rail}")
        if "6" in families:
            lines.append(f"address add {address(host.number, '6', rail)}/64 nodad dev rail{rail}")
    if host.docker:
        lines += ["link add docker0 type bridge", "address add 172.17.0.1/16 dev docker0",
                  "link set docker0 up"]
    return "\n".join(lines) + "\n"


def hosts_file(host, hosts, families, kind):
    """The text of a host's /etc/hosts."""
    lines = [f"{loopback} localhost" for loopback in ("127.0.0.1", "::1")]
    if kind == "loopback":
        lines.append(f"127.0.1.1 {host.hostname} {host.key}")
    if kind != "local":
        for other in hosts:
            if kind == "loopback" and other.key == host.key:
                continue
            names = dict.fromkeys((other.key, other.hostname))
            lines += [f"{one} {' '.join(names)}" for one in addresses(other.number, families)]
    return "\n".join(lines) + "\n"


# --- what is done to a cable ---

def parse_direction(text, what):
    """(from, host at the other end, rest) of `[in|out] [to|from HOST] REST`."""
    found = re.fullmatch(r"(?:(in|out)\s+)?(?:(to|from)\s+([a-h])\s+)?(\S.*)", text.strip())
    if not found or (found[1] and found[2]):
        raise LabError(f"{what}: {text}: not [in|out|to HOST|from HOST] SETTINGS",
                       "write for example 'delay 5ms loss 1%', 'out loss 10%' or 'to c loss 100%'")
    # Side a is the host's.
    side = {"out": "a", "in": "b"}.get(found[1]) or {"to": "a", "from": "b"}.get(found[2])
    return side, found[3], found[4]


def number_of(text, unit, what):
    found = re.fullmatch(rf"(\d+(?:\.\d+)?){unit}", text)
    if not found:
        raise LabError(f"{what}: {text}: no number with {unit}", f"write for example 5{unit}")
    return float(found[1])


def parse_rule(text):
    """A rule of cable.py of `[in|out|to HOST|from HOST] [delay 5ms] [jitter 2ms] [loss 1%] [reorder 5%]`;
    the host at the other end is in `peer`."""
    side, peer, rest = parse_direction(text, "cable")
    words = rest.split()
    known = {"delay": ("delay_ms", "ms", 1), "jitter": ("jitter_ms", "ms", 1),
             "loss": ("loss", "%", 0.01), "reorder": ("reorder", "%", 0.01)}
    rule = {"from": side, "peer": peer}
    if len(words) % 2 or any(word not in known for word in words[::2]):
        raise LabError(f"cable: {rest}: not made of delay, jitter, loss and reorder, each with a value",
                       "write for example 'delay 5ms loss 1%'")
    for word, value in zip(words[::2], words[1::2]):
        name, unit, factor = known[word]
        rule[name] = number_of(value, unit, "cable") * factor
    return rule


def parse_rate(text):
    """(from, host at the other end, rate of tc)."""
    side, peer, rate = parse_direction(text, "rate")
    if not re.fullmatch(r"\d+(?:\.\d+)?[kmg]?bit", rate):
        raise LabError(f"rate: {rate}: no rate", "write for example 100mbit")
    return side, peer, rate


def ends_of(host, side, rail):
    """[(in the host's namespace?, device)] of the ends of a cable that send: what the host sends (a), what it
    receives (b), or both."""
    return [end for key, end in (("a", (True, interface(host, rail))), ("b", (False, port(host.number, rail))))
            if side in (None, key)]


def rate_batches(host, peer, side, rate, rail=0, others="100gbit"):
    """[(in the host's namespace?, input of `tc -batch`)] for a limit on what leaves or reaches a host.
    `others` is that of its other peers, where `peer` is one."""
    made = []
    for inside, device in ends_of(host, side, rail):
        # What was there has another shape, and cannot be changed into this one.
        clear = f"qdisc replace dev {device} root handle 2: pfifo_fast\n"
        if peer is None:
            lines = [f"qdisc replace dev {device} root handle 1: tbf rate {rate} burst 64kb latency 50ms"]
        else:
            end = "dst" if inside else "src"
            lines = [
                f"qdisc replace dev {device} root handle 1: htb default 1",
                f"class replace dev {device} parent 1: classid 1:1 htb rate {others} burst 64kb",
                f"class replace dev {device} parent 1: classid 1:2 htb rate {rate} burst 64kb",
                f"filter add dev {device} parent 1: prio 1 protocol ip u32 match ip {end} "
                f"{address(peer.number, '4', rail)}/32 classid 1:2",
                f"filter add dev {device} parent 1: prio 2 protocol ipv6 u32 match ip6 {end} "
                f"{address(peer.number, '6', rail)}/128 classid 1:2"]
        made.append((inside, clear + "".join(line + "\n" for line in lines)))
    return made


#: Classic BPF: a random number below the limit is a frame that is dropped (TC_ACT_SHOT).
RANDOM_WORD, TAKEN, DROPPED = 0xfffff000 + 56, 0, 2


def loss_batches(host, side, share, rail=0):
    """[(in the host's namespace?, input of `tc -batch`)] for a cable that loses that share (0 to 1) of the
    frames of either direction; 0 makes it a good one. No program is between, which would slow it."""
    limit = min(int(share * 2 ** 32), 2 ** 32 - 1)
    program = f"4,32 0 0 {RANDOM_WORD},53 0 1 {limit},6 0 0 {TAKEN},6 0 0 {DROPPED}"
    return [(inside, f"qdisc replace dev {device} clsact\n" + (
        f"filter replace dev {device} egress prio 1 handle 1 protocol all bpf bytecode \"{program}\" direct-action\n"
        if limit else f"filter delete dev {device} egress\n"))
            for inside, device in ends_of(host, side, rail)]
