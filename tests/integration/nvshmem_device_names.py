"""NVSHMEM's functions for kernels, as a table of its own: what each name takes and returns. A file that
compares them with the headers' declarations, and takes the address of each in device code."""
SIGNED = [("short", "short"), ("int", "int"), ("long", "long"), ("longlong", "long long")]
UNSIGNED = [("ushort", "unsigned short"), ("uint", "unsigned int"), ("ulong", "unsigned long"),
            ("ulonglong", "unsigned long long")]
FIXED = [(f"{kind}{bits}", f"{kind}{bits}_t") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
SIZE, PTRDIFF = ("size", "size_t"), ("ptrdiff", "ptrdiff_t")
FLOATING = [("float", "float"), ("double", "double")]
HALF = [("half", "half"), ("bfloat16", "__nv_bfloat16")]
UCHAR, CHARS = ("uchar", "unsigned char"), [("char", "char"), ("schar", "signed char")]

RMA = [*FLOATING, *HALF, *CHARS, UCHAR, *SIGNED, *UNSIGNED, *FIXED, SIZE, PTRDIFF]
BITWISE = [("uint", "unsigned int"), ("ulong", "unsigned long"), ("ulonglong", "unsigned long long"),
           ("int32", "int32_t"), ("int64", "int64_t"), ("uint32", "uint32_t"), ("uint64", "uint64_t")]
STANDARD = [*BITWISE, ("int", "int"), ("long", "long"), ("longlong", "long long"), SIZE, PTRDIFF]
EXTENDED = [*STANDARD, *FLOATING]
WAIT = [*SIGNED, *UNSIGNED, ("int32", "int32_t"), ("int64", "int64_t"), ("uint32", "uint32_t"),
        ("uint64", "uint64_t"), SIZE, PTRDIFF]
REDUCE_BITS = [UCHAR, *UNSIGNED, *FIXED, SIZE]
REDUCE = [*REDUCE_BITS, *CHARS, *SIGNED, *HALF, *FLOATING]
SCOPES = [("nvshmem", ""), ("nvshmemx", "_warp"), ("nvshmemx", "_block")]
SIGNAL = "uint64_t*, uint64_t, int, int"


def moved_between(element):
    return f"{element}*, const {element}*"


def one_sided():
    """(name without prefix and suffix, result, arguments), of calls that each scope has."""
    named = [(f"{name}_{{}}", c_type) for name, c_type in RMA]
    named += [(f"{{}}{bits}", "void") for bits in (8, 16, 32, 64, 128)] + [("{}mem", "void")]
    for pattern, element in named:
        by_size = element == "void"

        def spell(call, pattern=pattern, by_size=by_size):
            verb, _, rest = call.partition("_")
            return pattern.format(verb) + (f"_{rest}" if rest else "") if by_size else pattern.format(call)
        two = moved_between(element)
        for call in ("put", "get", "put_nbi", "get_nbi"):
            yield spell(call), "void", f"{two}, size_t, int"
        for call in ("put_signal", "put_signal_nbi"):
            yield spell(call), "void", f"{two}, size_t, {SIGNAL}"
        if pattern != "{}mem":
            for call in ("iput", "iget"):
                yield spell(call), "void", f"{two}, ptrdiff_t, ptrdiff_t, size_t, int"


def collectives():
    yield "barrier", "int", "nvshmem_team_t"
    yield "team_sync", "int", "nvshmem_team_t"
    yield "barrier_all", "void", ""
    yield "sync_all", "void", ""
    for pattern, element in [*((f"{name}_{{}}", c_type) for name, c_type in RMA), ("{}mem", "void")]:
        two = moved_between(element)
        yield pattern.format("broadcast"), "int", f"nvshmem_team_t, {two}, size_t, int"
        for call in ("fcollect", "alltoall"):
            yield pattern.format(call), "int", f"nvshmem_team_t, {two}, size_t"
    for types, operations in ((REDUCE_BITS, ("and", "or", "xor")), (REDUCE, ("min", "max", "sum", "prod"))):
        for name, c_type in types:
            for operation in operations:
                for call in ("reduce", "reducescatter"):
                    yield f"{name}_{operation}_{call}", "int", f"nvshmem_team_t, {moved_between(c_type)}, size_t"


def by_threads():
    for name, c_type in RMA:
        yield f"{name}_p", "void", f"{c_type}*, {c_type}, int"
        yield f"{name}_g", c_type, f"const {c_type}*, int"
    for name, c_type in EXTENDED:
        yield f"{name}_atomic_fetch", c_type, f"const {c_type}*, int"
        yield f"{name}_atomic_set", "void", f"{c_type}*, {c_type}, int"
        yield f"{name}_atomic_swap", c_type, f"{c_type}*, {c_type}, int"
    for name, c_type in STANDARD:
        yield f"{name}_atomic_compare_swap", c_type, f"{c_type}*, {c_type}, {c_type}, int"
        yield f"{name}_atomic_fetch_inc", c_type, f"{c_type}*, int"
        yield f"{name}_atomic_inc", "void", f"{c_type}*, int"
        yield f"{name}_atomic_fetch_add", c_type, f"{c_type}*, {c_type}, int"
        yield f"{name}_atomic_add", "void", f"{c_type}*, {c_type}, int"
    for name, c_type in BITWISE:
        for operation in ("and", "or", "xor"):
            yield f"{name}_atomic_{operation}", "void", f"{c_type}*, {c_type}, int"
            yield f"{name}_atomic_fetch_{operation}", c_type, f"{c_type}*, {c_type}, int"
    for name, c_type in WAIT:
        yield f"{name}_wait_until", "void", f"{c_type}*, int, {c_type}"
        yield f"{name}_test", "int", f"{c_type}*, int, {c_type}"
        for call, result, indices in (("wait_until_all", "void", ""), ("wait_until_any", "size_t", ""),
                                      ("wait_until_some", "size_t", "size_t*, "), ("test_all", "int", ""),
                                      ("test_any", "size_t", ""), ("test_some", "size_t", "size_t*, ")):
            begin = f"{c_type}*, size_t, {indices}const int*, int"
            yield f"{name}_{call}", result, f"{begin}, {c_type}"
            yield f"{name}_{call}_vector", result, f"{begin}, {c_type}*"
    yield "signal_fetch", "uint64_t", "uint64_t*"
    yield "signal_wait_until", "uint64_t", "uint64_t*, int, uint64_t"
    yield "my_pe", "int", ""
    yield "n_pes", "int", ""
    yield "ptr", "void*", "const void*, int"
    yield "team_my_pe", "int", "nvshmem_team_t"
    yield "team_n_pes", "int", "nvshmem_team_t"
    yield "team_translate_pe", "int", "nvshmem_team_t, int, nvshmem_team_t"
    yield "fence", "void", ""
    yield "quiet", "void", ""
    yield "info_get_version", "void", "int*, int*"
    yield "info_get_name", "void", "char*"
    yield "global_exit", "void", "int"


EXTENSIONS = [("nvshmemx_signal_op", "void", f"{SIGNAL}"), ("nvshmemx_mc_ptr", "void*", "nvshmem_team_t, const void*"),
              ("nvshmemx_vendor_get_version_info", "void", "int*, int*, int*"),
              ("nvshmemx_double2_maxloc_reduce_block", "int", "nvshmem_team_t, double2*, const double2*, size_t")]


def functions():
    """(name, result, arguments) of every function that kernels can call."""
    for family in (one_sided, collectives):
        for name, result, arguments in family():
            for prefix, suffix in SCOPES:
                yield f"{prefix}_{name}{suffix}", result, arguments
    for name, result, arguments in by_threads():
        yield f"nvshmem_{name}", result, arguments
    yield from EXTENSIONS


def source(rows):
    """A program whose kernel has the address of each of these functions."""
    checks = "".join(f"static_assert(std::is_same<decltype(&{name}), {result} (*)({arguments})>::value, \"{name}\");\n"
                     for name, result, arguments in rows)
    addresses = "".join(f"  at[{i}] = reinterpret_cast<void*>(&{name});\n" for i, (name, _, _) in enumerate(rows))
    return ("#include <nvshmem.h>\n#include <nvshmemx.h>\n#include <type_traits>\n" + checks +
            f"__global__ void addresses(void** at) {{\n{addresses}}}\n"
            "int main() {\n  addresses<<<1, 1>>>(nullptr);\n  return 0;\n}\n")


def calls(rows):
    """A program with a kernel for each of these functions, which calls it: `call_NAME`."""
    kernels = []
    for name, _, arguments in rows:
        types = arguments.split(", ") if arguments else []
        parameters = ", ".join(f"{c_type} a{i}" for i, c_type in enumerate(types))
        values = ", ".join(f"a{i}" for i in range(len(types)))
        kernels.append(f"extern \"C\" __global__ void call_{name}({parameters}) {{ {name}({values}); }}\n")
    return "#include <nvshmem.h>\n" + "".join(kernels) + "int main() { return 0; }\n"
