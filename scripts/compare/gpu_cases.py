"""What compare_gpu.py measures: the cases of each group, and their names and order in the table."""
BANDWIDTH_SIZES = (64 << 10, 1 << 20, 16 << 20, 64 << 20)
COLLECTIVE_SIZES = (8 << 10, 1 << 20, 8 << 20)

SWEEP_CTAS = (4, 8, 12, 16, 24, 32)
SWEEP_SIZES = (64 << 20,)
EXCHANGE_SIZES = (1 << 20, 64 << 20, 1 << 30)  # of all blocks of a PE
SCOPED = ["put-latency", "get-latency", "put-signal-pingpong", "barrier"]

# Ours: what `bench` is told, by group; a process has to start for each. In the table a case has the name `rename` and
# ends in `suffix`; `all_send`: the report has the sum over all senders. `blocks`: sizes are of all blocks of a PE.
GROUPS = (
    {"group": "bandwidth", "words": ["put", "get", "--initiator", "gpu"], "sizes": BANDWIDTH_SIZES},
    {"group": "latency", "words": [*SCOPED, "signal-pingpong", "p", "g", "atomic-fetch-add", "atomic-add",
                                   "--initiator", "gpu"], "sizes": (8,)},
    {"group": "warp", "words": [*SCOPED, "--initiator", "gpu", "--scope", "warp"], "sizes": (8,), "suffix": "/warp"},
    {"group": "block", "words": [*SCOPED, "--initiator", "gpu", "--scope", "block"], "sizes": (8,),
     "suffix": "/block"},
    {"group": "stream", "words": ["barrier", "--initiator", "stream"], "sizes": (8,), "suffix": "/stream"},
    {"group": "stream", "words": ["fcollect", "alltoall", "reduce-float", "--initiator", "stream"],
     "sizes": COLLECTIVE_SIZES},
    {"group": "kernel", "words": ["fcollect", "alltoall", "reduce-float", "--initiator", "gpu"],
     "sizes": COLLECTIVE_SIZES[:1], "suffix": "/kernel"},
    {"group": "kernel", "words": ["fcollect", "alltoall", "reduce-float", "--initiator", "gpu", "--ctas", "32"],
     "sizes": COLLECTIVE_SIZES[1:], "suffix": "/kernel"},
    {"group": "sweep", "words": ["put", "--initiator", "gpu", "--ctas", "132"], "sizes": SWEEP_SIZES, "suffix": "/132"},
    *({"group": "sweep", "words": ["put", "--initiator", "gpu", "--traffic", "pairs", "--bidir", "--ctas", str(ctas)],
       "sizes": SWEEP_SIZES, "rename": "put-both", "all_send": True, "suffix": f"/{ctas}"} for ctas in SWEEP_CTAS),
    *({"group": "sweep", "words": ["alltoall", "--initiator", "gpu", "--ctas", str(ctas), "--threads", "1024"],
       "sizes": SWEEP_SIZES, "rename": "alltoall", "suffix": f"/{ctas}"} for ctas in (*SWEEP_CTAS, 64)),
    *({"group": "exchange", "words": ["alltoall", "--initiator", "stream"], "sizes": (size,), "blocks": True,
       "suffix": "/stream"} for size in EXCHANGE_SIZES),
    *({"group": "exchange", "words": ["alltoall", "--initiator", "gpu", "--ctas", "32", "--threads", "1024"],
       "sizes": (size,), "blocks": True, "suffix": "/kernel"} for size in EXCHANGE_SIZES),
)
NAMES = tuple(dict.fromkeys(group["group"] for group in GROUPS))
UNSIZED = ("signal-pingpong", "barrier")
SHAPES = {
    "put": "32 x 1024 threads, a block puts its 32nd of each message, one quiet ends many messages; a number after "
           "the name is the number of blocks",
    "get": "as put",
    "put-both": "as put, but the GPUs of each pair put to each other simultaneously, with that number of blocks; the "
                "rate of one GPU",
    "put-latency": "8 bytes, each with quiet, by one thread, a warp, or a block of 128",
    "get-latency": "8 bytes, each with quiet",
    "put-signal-pingpong": "8 bytes, half of a round trip",
    "signal-pingpong": "one thread, half of a round trip",
    "p": "one thread, 8 bytes, each with quiet",
    "g": "one thread, 8 bytes",
    "atomic-fetch-add": "one thread, 8 bytes",
    "atomic-add": "one thread, 8 bytes, each with quiet",
    "barrier": "one thread, warp or block of each PE; stream: one after the other in a stream",
    "fcollect": "in a stream, or inside of a kernel; the size is a PE's contribution; NCCL: all_gather; kernel: one "
                "block of 512 threads, from 1M on 32 of ours (NVSHMEM's call is one block's)",
    "alltoall": "as fcollect; the size is a block; NCCL: all_to_all; a number after the name is the number of blocks, "
                "of 1024 threads; group exchange: 1M, 64M and 1G of each PE, /stream in a stream (NCCL, too), /kernel "
                "by 32 blocks of 1024 threads (NVSHMEM: one of 512)",
    "reduce-float": "as fcollect; the size is the array; NCCL: all_reduce",
}


def case_of(name):
    return name.partition("/")[0]


def key_of(name, size_bytes):
    return name, 0 if case_of(name) in UNSIZED else size_bytes


def order_of(key):
    """In the table: as SHAPES has the cases; one thread before warp and block, few blocks before many."""
    case, _, variant = key[0].partition("/")
    return list(SHAPES).index(case), int(variant) if variant.isdigit() else 0, len(variant) > 0, variant, key[1]
