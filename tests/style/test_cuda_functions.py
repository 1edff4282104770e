"""Functions of the CUDA driver are found by cuGetProcAddress, which gives the newest one up to the version that is
asked for, and called with the parameters that cuda.h declares. Where a newer one has other parameters, and cuda.h
declares it under a name of its own only, the call crashes: so it was with cuCtxGetDevice of CUDA 13. Here the
declarations are compared with cudaTypedefs.h, which has the parameters by version. Skipped without CUDA's headers."""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = pathlib.Path(os.environ.get("SHMEMCTL_NVCC", "/usr/local/cuda/bin/nvcc")).resolve().parent.parent / "include"


def plain(parameters):
    """Types without the names of parameters, and without what typedefs of older versions are called."""
    types = []
    for each in re.sub(r"/\*.*?\*/", "", parameters, flags=re.S).split(","):
        words = re.sub(r"\[\d*\]", "*", each.replace("*", " * ")).split()
        if len(words) > 1 and re.fullmatch(r"\w+", words[-1]):
            words.pop()
        types.append(" ".join(re.sub(r"_v\d+$", "", word) for word in words if word not in ("const", "struct")))
    return types


def asked(text):
    """{function: the newest version that is asked for, None without a limit}."""
    found = {name: None for name in re.findall(r"FUNCTION\(\w+, (cu\w+)\)", text)}
    for name, newest in re.findall(r'find\(found\.\w+, "(cu\w+)"(?:, (\d+))?\)', text):
        found[name] = int(newest) if newest else None
    return found


def different(functions, header, typedefs):
    """Functions whose newest version has other parameters than cuda.h declares."""
    version = int(re.search(r"#define CUDA_VERSION (\d+)", header).group(1))
    wrong = []
    for name, newest in functions.items():
        by_version = {int(v): plain(p) for v, p in re.findall(rf"PFN_{name}_v(\d+)\)\(([^;]*)\);", typedefs)}
        usable = [v for v in by_version if v <= min(version, newest or version)]
        macro = re.search(rf"#define {name}\s+(\w+_v\d+)\b", header)
        declared = re.search(rf"CUDAAPI {macro.group(1) if macro else name}\(([^;]*)\);", header)
        if usable and declared and by_version[max(usable)] != plain(declared.group(1)):
            wrong.append(f"{name}: version {max(usable)} takes {by_version[max(usable)]}")
    return wrong


@unittest.skipUnless((INCLUDE / "cudaTypedefs.h").exists(), f"{INCLUDE} has no cudaTypedefs.h")
class CudaFunctions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.header = (INCLUDE / "cuda.h").read_text(errors="replace")
        cls.typedefs = (INCLUDE / "cudaTypedefs.h").read_text(errors="replace")
        cls.functions = {}
        for path in ("src/runtime/cuda/driver.h", "src/runtime/nvshmem/kernel_state.cpp"):
            cls.functions.update(asked((ROOT / path).read_text()))

    def test_parameters_are_those_of_the_header(self):
        self.assertGreater(len(self.functions), 50)
        self.assertEqual(different(self.functions, self.header, self.typedefs), [])

    def test_other_parameters_are_found(self):
        header = "#define CUDA_VERSION 13000\nCUresult CUDAAPI cuCtxGetDevice(CUdevice *device);\n"
        typedefs = ("typedef CUresult (CUDAAPI *PFN_cuCtxGetDevice_v2000)(CUdevice_v1 *device);\n"
                    "typedef CUresult (CUDAAPI *PFN_cuCtxGetDevice_v13000)(CUdevice *device, CUcontext ctx);\n")
        self.assertEqual(len(different({"cuCtxGetDevice": None}, header, typedefs)), 1)
        self.assertEqual(different({"cuCtxGetDevice": 12000}, header, typedefs), [])


if __name__ == "__main__":
    unittest.main()
