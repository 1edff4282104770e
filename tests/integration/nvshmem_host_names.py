"""NVSHMEM's functions of the host, as a table of its own: what each name takes and returns, not made from the
headers. table() gives them as (name, result, arguments)."""
SIGNED = [("short", "short"), ("int", "int"), ("long", "long"), ("longlong", "long long")]
UNSIGNED = [("ushort", "unsigned short"), ("uint", "unsigned int"), ("ulong", "unsigned long"),
            ("ulonglong", "unsigned long long")]
WORDS = [("int32", "int32_t"), ("int64", "int64_t"), ("uint32", "uint32_t"), ("uint64", "uint64_t")]
FIXED = [*WORDS, ("int8", "int8_t"), ("int16", "int16_t"), ("uint8", "uint8_t"), ("uint16", "uint16_t")]
SIZES = [("size", "size_t"), ("ptrdiff", "ptrdiff_t")]
FLOATING = [("float", "float"), ("double", "double")]
HALF = [("half", "__half"), ("bfloat16", "__nv_bfloat16")]
UCHAR, CHARS = ("uchar", "unsigned char"), [("char", "char"), ("schar", "signed char")]

RMA = [*FLOATING, *HALF, *CHARS, UCHAR, *SIGNED, *UNSIGNED, *FIXED, *SIZES]
WAIT = [*SIGNED, *UNSIGNED, *WORDS, *SIZES]
BIT_AMO = [("uint", "unsigned int"), ("ulong", "unsigned long"), ("ulonglong", "unsigned long long"), *WORDS]
AMO = [*BIT_AMO, ("int", "int"), ("long", "long"), ("longlong", "long long"), *SIZES]
BIT_REDUCE = [UCHAR, *UNSIGNED, *FIXED, SIZES[0]]
REDUCE = [*BIT_REDUCE, *CHARS, *SIGNED, *HALF, *FLOATING]

ALONE = """
void nvshmem_init()
int nvshmem_init_thread(int, int*)
void nvshmem_query_thread(int*)
int nvshmemx_init_attr(unsigned int, nvshmemx_init_attr_t*)
int nvshmemx_hostlib_init_attr(unsigned int, nvshmemx_init_attr_t*)
int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t*)
int nvshmemx_set_attr_uniqueid_args(int, int, const nvshmemx_uniqueid_t*, nvshmemx_init_attr_t*)
int nvshmemx_set_attr_mpi_comm_args(void*, nvshmemx_init_attr_t*)
int nvshmemx_init_status()
void nvshmem_finalize()
void nvshmemx_hostlib_finalize()
void nvshmem_global_exit(int)
int nvshmemx_cumodule_init(CUmodule)
int nvshmemx_cumodule_finalize(CUmodule)
int nvshmemx_culibrary_init(CUlibrary)
int nvshmemx_culibrary_finalize(CUlibrary)
int nvshmem_my_pe()
int nvshmem_n_pes()
void nvshmem_info_get_version(int*, int*)
void nvshmem_info_get_name(char*)
void nvshmemx_vendor_get_version_info(int*, int*, int*)
void* nvshmem_malloc(size_t)
void* nvshmem_calloc(size_t, size_t)
void* nvshmem_align(size_t, size_t)
void nvshmem_free(void*)
void* nvshmem_ptr(const void*, int)
void* nvshmemx_mc_ptr(nvshmem_team_t, const void*)
int nvshmemx_buffer_register(void*, size_t)
int nvshmemx_buffer_unregister(void*)
void nvshmemx_buffer_unregister_all()
void* nvshmemx_buffer_register_symmetric(void*, size_t, int)
int nvshmemx_buffer_unregister_symmetric(void*, size_t)
int nvshmem_team_my_pe(nvshmem_team_t)
int nvshmem_team_n_pes(nvshmem_team_t)
int nvshmem_team_translate_pe(nvshmem_team_t, int, nvshmem_team_t)
void nvshmem_team_get_config(nvshmem_team_t, nvshmem_team_config_t*)
int nvshmem_team_split_strided(nvshmem_team_t, int, int, int, const nvshmem_team_config_t*, long, nvshmem_team_t*)
int nvshmem_team_split_2d(nvshmem_team_t, int, const nvshmem_team_config_t*, long, nvshmem_team_t*, \
const nvshmem_team_config_t*, long, nvshmem_team_t*)
void nvshmem_team_destroy(nvshmem_team_t)
int nvshmemx_team_get_uniqueid(nvshmemx_team_uniqueid_t*)
int nvshmemx_team_init(nvshmem_team_t*, nvshmem_team_config_t*, long, int, int)
void nvshmem_fence()
void nvshmem_quiet()
int nvshmem_barrier(nvshmem_team_t)
void nvshmem_barrier_all()
int nvshmem_team_sync(nvshmem_team_t)
void nvshmem_sync_all()
int nvshmemx_barrier_on_stream(nvshmem_team_t, cudaStream_t)
void nvshmemx_barrier_all_on_stream(cudaStream_t)
int nvshmemx_team_sync_on_stream(nvshmem_team_t, cudaStream_t)
void nvshmemx_sync_all_on_stream(cudaStream_t)
void nvshmemx_quiet_on_stream(cudaStream_t)
void nvshmemx_signal_op(uint64_t*, uint64_t, int, int)
uint64_t nvshmem_signal_fetch(uint64_t*)
uint64_t nvshmem_signal_wait_until(uint64_t*, int, uint64_t)
void nvshmemx_signal_op_on_stream(uint64_t*, uint64_t, int, int, cudaStream_t)
void nvshmemx_signal_wait_until_on_stream(uint64_t*, int, uint64_t, cudaStream_t)
int nvshmemx_collective_launch(const void*, dim3, dim3, void**, size_t, cudaStream_t)
int nvshmemx_collective_launch_query_gridsize(const void*, dim3, void**, size_t, int*)
"""


def alone():
    for line in ALONE.replace("\\\n", "").strip().splitlines():
        head, _, arguments = line.partition("(")
        result, name = head.rsplit(" ", 1)
        yield name, result, arguments.rstrip(")")


def both(call, result, arguments):
    """A call of the host, and the same on a stream."""
    yield f"nvshmem_{call}", result, arguments
    yield f"nvshmemx_{call}_on_stream", result, arguments + ", cudaStream_t"


def one_sided(put, get, element):
    """`put` and `get` are patterns of the names: "int_{}" makes int_iput of "iput"."""
    two = f"{element}*, const {element}*"
    for pattern, verb in ((put, "put"), (get, "get")):
        for nbi in ("", "_nbi"):
            yield from both(pattern.format(verb, nbi), "void", f"{two}, size_t, int")
    for nbi in ("_signal", "_signal_nbi"):
        yield from both(put.format("put", nbi), "void", f"{two}, size_t, uint64_t*, uint64_t, int, int")


def strided(pattern, element):
    for verb in ("iput", "iget"):
        yield from both(pattern.format(verb, ""), "void",
                        f"{element}*, const {element}*, ptrdiff_t, ptrdiff_t, size_t, int")


def moving(pattern, element):
    two = f"nvshmem_team_t, {element}*, const {element}*, size_t"
    yield from both(pattern.format("broadcast"), "int", two + ", int")
    for call in ("fcollect", "alltoall"):
        yield from both(pattern.format(call), "int", two)


def waits(name, c_type):
    one, each = f"int, {c_type}", f"int, {c_type}*"
    yield f"nvshmem_{name}_wait_until", "void", f"{c_type}*, {one}"
    yield f"nvshmem_{name}_test", "int", f"{c_type}*, {one}"
    yield f"nvshmemx_{name}_wait_until_on_stream", "void", f"{c_type}*, {one}, cudaStream_t"
    for call, result, indices in (("wait_until_all", "void", ""), ("wait_until_any", "size_t", ""),
                                  ("wait_until_some", "size_t", "size_t*, "), ("test_all", "int", ""),
                                  ("test_any", "size_t", ""), ("test_some", "size_t", "size_t*, ")):
        for suffix, last in (("", one), ("_vector", each)):
            arguments = f"{c_type}*, size_t, {indices}const int*, {last}"
            yield f"nvshmem_{name}_{call}{suffix}", result, arguments
            if call == "wait_until_all":
                yield f"nvshmemx_{name}_{call}{suffix}_on_stream", result, arguments + ", cudaStream_t"


def atomics():
    for name, c_type in [*AMO, *FLOATING]:
        yield f"nvshmem_{name}_atomic_fetch", c_type, f"const {c_type}*, int"
        yield f"nvshmem_{name}_atomic_set", "void", f"{c_type}*, {c_type}, int"
        yield f"nvshmem_{name}_atomic_swap", c_type, f"{c_type}*, {c_type}, int"
    for name, c_type in AMO:
        yield f"nvshmem_{name}_atomic_compare_swap", c_type, f"{c_type}*, {c_type}, {c_type}, int"
        yield f"nvshmem_{name}_atomic_fetch_inc", c_type, f"{c_type}*, int"
        yield f"nvshmem_{name}_atomic_inc", "void", f"{c_type}*, int"
    for types, calls in ((AMO, ("add",)), (BIT_AMO, ("and", "or", "xor"))):
        for name, c_type in types:
            for call in calls:
                yield f"nvshmem_{name}_atomic_fetch_{call}", c_type, f"{c_type}*, {c_type}, int"
                yield f"nvshmem_{name}_atomic_{call}", "void", f"{c_type}*, {c_type}, int"


def reductions():
    for types, operators in ((BIT_REDUCE, ("and", "or", "xor")), (REDUCE, ("min", "max", "sum", "prod"))):
        for name, c_type in types:
            for operator in operators:
                for call in ("reduce", "reducescatter"):
                    yield from both(f"{name}_{operator}_{call}", "int",
                                    f"nvshmem_team_t, {c_type}*, const {c_type}*, size_t")


def table():
    yield from alone()
    for name, c_type in RMA:
        yield from one_sided(name + "_{}{}", name + "_{}{}", c_type)
        yield from strided(name + "_{}{}", c_type)
        yield from moving(name + "_{}", c_type)
        yield f"nvshmem_{name}_p", "void", f"{c_type}*, const {c_type}, int"
        yield f"nvshmem_{name}_g", c_type, f"const {c_type}*, int"
        yield f"nvshmemx_{name}_p_on_stream", "void", f"{c_type}*, const {c_type}, int, cudaStream_t"
        yield f"nvshmemx_{name}_g_on_stream", c_type, f"const {c_type}*, int, cudaStream_t"
    for bits in ("8", "16", "32", "64", "128"):
        yield from one_sided("{}" + bits + "{}", "{}" + bits + "{}", "void")
        yield from strided("{}" + bits + "{}", "void")
    yield from one_sided("{}mem{}", "{}mem{}", "void")
    yield from moving("{}mem", "void")
    for name, c_type in WAIT:
        yield from waits(name, c_type)
    yield from atomics()
    yield from reductions()


def program(language):
    """A program that takes the address of each function, as a pointer of the type that the table says."""
    halves = ("half", "bfloat16")
    rows = [row for row in table() if language == "c++" or not row[0].split("_")[1].startswith(halves)]
    lines = ["#include <nvshmem.h>", "#include <nvshmemx.h>"]
    lines += [f"{result} (*volatile p{i})({arguments or 'void'}) = {name};"
              for i, (name, result, arguments) in enumerate(rows)]
    lines += ["int main(void) {", "  int there = 0;"]
    lines += [f"  there += p{i} != 0;" for i in range(len(rows))]
    lines += [f"  return there == {len(rows)} ? 0 : 1;", "}"]
    return "\n".join(lines) + "\n"
