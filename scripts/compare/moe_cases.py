"""What compare_moe.py measures, and the bytes of it by each project's definition."""

HIDDEN, TOP_K, EXPERTS = 7168, 8, 256

# A cell of the table is one of these with one operation and one window.
CASES = {
    "ht-bf16": {"mode": "ht", "dtype": "bf16", "tokens": 4096,
                "operations": ("dispatch", "cached-dispatch", "combine")},
    "ht-fp8": {"mode": "ht", "dtype": "fp8", "tokens": 4096, "operations": ("dispatch", "cached-dispatch")},
    "ll-128": {"mode": "ll", "dtype": "fp8", "tokens": 128, "operations": ("dispatch", "combine")},
    "ll-16": {"mode": "ll", "dtype": "fp8", "tokens": 16, "operations": ("dispatch", "combine")},
    "ll-1": {"mode": "ll", "dtype": "fp8", "tokens": 1, "operations": ("dispatch", "combine")},
}
OPERATIONS = ("dispatch", "cached-dispatch", "combine")

WINDOWS = {
    "kernels": "from input tensors ready until outputs ready on the caller's stream, by CUDA events, behind a delay "
               "and a barrier on the GPUs' streams: all GPUs begin together, and what the host launches in advance "
               "costs nothing; where a call waits for the GPU, the host's part is in it",
    "call": "the same events, but on idle GPUs, when the hosts have met: launches and the library's work on the host "
            "are in it",
}

COUNTS = ("own", "deepep-v1", "deepep-v2", "per-selection")
INDEX_BYTES, WEIGHT_BYTES, HEAD_BYTES, CHANNELS_PER_SCALE = 8, 4, 16, 128


class BadRouting(Exception):
    """The file has not the form that `shmemctl moe --record` writes."""


class Routing:
    """Of all ranks: by rank and token the chosen experts; -1 is none."""

    def __init__(self, n_experts, top_k, choices):
        self.n_experts, self.top_k, self.choices = n_experts, top_k, choices

    @property
    def n_ranks(self):
        return len(self.choices)

    def rank_of(self, expert):
        return expert // (self.n_experts // self.n_ranks)

    def ranks_of(self, experts):
        return {self.rank_of(expert) for expert in experts if expert >= 0}

    def received_rows(self):
        """By rank: each token once from its source, its own included."""
        rows = [0] * self.n_ranks
        for tokens in self.choices:
            for experts in tokens:
                for rank in self.ranks_of(experts):
                    rows[rank] += 1
        return rows

    def sent_rows(self):
        """By rank: rows for other ranks."""
        return [sum(len(self.ranks_of(experts) - {source}) for experts in tokens)
                for source, tokens in enumerate(self.choices)]

    def returned_selections(self):
        """By rank: outputs of its experts for tokens of other ranks."""
        returned = [0] * self.n_ranks
        for source, tokens in enumerate(self.choices):
            for experts in tokens:
                for expert in experts:
                    if expert >= 0 and self.rank_of(expert) != source:
                        returned[self.rank_of(expert)] += 1
        return returned

    def selections(self):
        """By rank: how many experts its own tokens have chosen."""
        return [sum(expert >= 0 for experts in tokens for expert in experts) for tokens in self.choices]

    def selections_received(self):
        selected = [0] * self.n_ranks
        for tokens in self.choices:
            for experts in tokens:
                for expert in experts:
                    if expert >= 0:
                        selected[self.rank_of(expert)] += 1
        return selected


def read_routing(text):
    """A file of `shmemctl moe --record`. Throws BadRouting."""
    lines = iter([line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")])
    try:
        if next(lines) != ["shmemctl-routing", "1"]:
            raise BadRouting("the first line is not \"shmemctl-routing 1\"")
        words = next(lines)
        if words[0::2] != ["ranks", "experts", "topk"]:
            raise BadRouting("no line \"ranks N experts N topk N\"")
        n_ranks, n_experts, top_k = map(int, words[1::2])
        choices = []
        for rank in range(n_ranks):
            words = next(lines)
            if words[0::2] != ["rank", "tokens"] or int(words[1]) != rank:
                raise BadRouting(f"no line \"rank {rank} tokens N\"")
            tokens = [[int(word) for word in next(lines)] for _ in range(int(words[3]))]
            if any(len(experts) != top_k or not all(-1 <= expert < n_experts for expert in experts)
                   for experts in tokens):
                raise BadRouting(f"rank {rank}: a token has not {top_k} experts of {n_experts}")
            choices.append(tokens)
        if next(lines)[0] != "end":
            raise BadRouting("no line \"end\"")
    except (StopIteration, IndexError, ValueError) as broken:
        raise BadRouting(f"it is cut short, or has no number where one should be: {broken}") from broken
    return Routing(n_experts, top_k, choices)


def row_bytes(dtype, operation, hidden=HIDDEN):
    """Values and FP32 scales; a combine is BF16."""
    if operation == "combine" or dtype == "bf16":
        return 2 * hidden
    return hidden + 4 * (hidden // CHANNELS_PER_SCALE)


def counted_bytes(routing, case, operation, count, hidden=HIDDEN):
    """By rank, as `shmemctl moe --count` has it."""
    row = row_bytes(case["dtype"], operation, hidden)
    low = case["mode"] == "ll"
    if count == "per-selection":
        return [selected * 2 * hidden for selected in routing.selections()]
    if count == "deepep-v2":
        metadata = routing.top_k * (WEIGHT_BYTES if operation == "combine" else INDEX_BYTES + WEIGHT_BYTES)
        return [rows * (row + metadata) for rows in routing.received_rows()]
    if count == "deepep-v1" and low:
        head = HEAD_BYTES if operation != "combine" and case["dtype"] == "fp8" else 0
        return [selected * (row + head) for selected in routing.selections()]
    if low:
        return [selected * row for selected in routing.selections_received()]
    return [rows * row for rows in routing.received_rows()]


def mean(values):
    return sum(values) / len(values)


def rates(routing, case, operation, time_us, hidden=HIDDEN):
    """{count: GB/s}: each project's bytes, on average over the ranks, by one time."""
    return {count: mean(counted_bytes(routing, case, operation, count, hidden)) / time_us / 1e3 for count in COUNTS}
