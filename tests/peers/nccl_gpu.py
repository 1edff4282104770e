"""What NCCL takes through torch.distributed on the same GPUs, for scripts/compare_gpu.py: one line of JSON for each
figure, by rank 0. Arguments: rank, number of ranks, a file to meet at, seconds for each, and the groups of figures
that are wanted (it has stream and exchange).

Calls one after the other in a stream, timed by events, as `shmemctl bench --initiator stream` has them. Behind them
every element that the last one left is compared on every rank."""
import json
import statistics
import sys

import torch
import torch.distributed as dist

SIZES = (8 << 10, 1 << 20, 8 << 20)
EXCHANGE_SIZES = (1 << 20, 64 << 20, 1 << 30)  # of all blocks of a rank
RUNS = 5
COMPARED = {"reduce-float": "every element of the last call, sums of zeros"}


def timed(call, count):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    dist.barrier()
    torch.cuda.synchronize()
    begin.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / count


def agreed(count):
    """The same on all ranks."""
    number = torch.tensor([count], device="cuda")
    dist.broadcast(number, 0)
    return int(number.item())


def exchange_case(rank, ranks, size):
    """{name: (call, whether it left what it must)}. Blocks differ by who sends and who receives."""
    count = size // 4
    blocks = torch.cat([torch.full((count,), float(rank * ranks + to), device="cuda") for to in range(ranks)])
    exchanged = torch.zeros_like(blocks)

    def check():
        return all(bool((exchanged[i * count:(i + 1) * count] == i * ranks + rank).all()) for i in range(ranks))

    return {"alltoall/stream": (lambda: dist.all_to_all_single(exchanged, blocks), check)}


def cases(rank, ranks, size):
    count = size // 4
    mine = torch.full((count,), float(rank + 1), device="cuda")
    blocks = torch.full((count * ranks,), float(rank + 1), device="cuda")
    gathered, exchanged = torch.zeros_like(blocks), torch.zeros_like(blocks)
    summed = torch.zeros_like(mine)

    def check_gather():
        return all(bool((gathered[i * count:(i + 1) * count] == i + 1).all()) for i in range(ranks))

    def check_exchange():
        return all(bool((exchanged[i * count:(i + 1) * count] == i + 1).all()) for i in range(ranks))

    return {
        "fcollect": (lambda: dist.all_gather_into_tensor(gathered, mine), check_gather),
        "alltoall": (lambda: dist.all_to_all_single(exchanged, blocks), check_exchange),
        # In place and of zeros, so that sums stay the same however often it runs.
        "reduce-float": (lambda: dist.all_reduce(summed), lambda: bool((summed == 0).all())),
    }


def main():
    rank, ranks, place, seconds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{place}", rank=rank, world_size=ranks,
                            device_id=torch.device("cuda", rank))
    if rank == 0:
        print(json.dumps({"version": ".".join(map(str, torch.cuda.nccl.version())) + ", torch " + torch.__version__}))
    wanted = [(cases, size) for size in SIZES if "stream" in sys.argv[5:]]
    wanted += [(exchange_case, size // ranks // 256 * 256) for size in EXCHANGE_SIZES if "exchange" in sys.argv[5:]]
    for make, size in wanted:
        for name, (call, check) in make(rank, ranks, size).items():
            timed(call, 5)
            one_us = max(timed(call, 20), 1)
            count = agreed(max(10, min(int(seconds / RUNS * 1e6 / one_us), 2000)))
            times = [timed(call, count) for _ in range(RUNS)]
            if not check():
                raise SystemExit(f"{name} of {size}: wrong data")
            if rank == 0:
                print(json.dumps({"name": name, "size_bytes": size, "value": statistics.median(times), "unit": "us",
                                  "compared": COMPARED.get(name, "every element of the last call")}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
