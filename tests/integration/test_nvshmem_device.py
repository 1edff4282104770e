"""NVSHMEM's functions for kernels: each is declared as NVSHMEM has it, can be compiled and linked, and leaves room
for blocks of 1024 threads. Nothing runs."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import nvshmem_device_names as names
from support import BINARY

TREE = pathlib.Path(BINARY).resolve().parent / "nvshmem-compat"
NVCC = os.environ.get("SHMEMCTL_NVCC", "")
ARCHITECTURES = ("80", "90")
# What kernels of one thread block of 1024 threads may take: 65536 registers of an SM.
MOST_REGISTERS = 64


def gencode(*architectures):
    return [word for number in architectures for word in ("-gencode", f"arch=compute_{number},code=sm_{number}")]


def some_of_each(rows):
    """Each call without a type, and those of types that differ in size or kind."""
    kept = ("_double_", "_half_", "_uchar_", "_uint64_", "putmem", "getmem", "castmem", "lectmem", "toallmem", "128",
            "double2")
    typed = tuple(f"_{name}_" for name, _ in names.RMA) + tuple(f"{verb}{bits}" for verb in ("put", "get")
                                                                for bits in (8, 16, 32, 64))
    return [row for row in rows if any(part in row[0] for part in kept) or not any(part in row[0] for part in typed)]


@unittest.skipUnless(NVCC, "no nvcc: a build without CUDA")
class Device(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def nvcc(self, *words, standard="c++17"):
        command = [NVCC, f"-std={standard}", "-rdc=true", "-I", TREE / "include", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1100, cwd=self.folder)
        return done.returncode, done.stdout + done.stderr

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def link_line(self):
        return ["-L", TREE / "lib", "-lnvshmem_host", "-lnvshmem_device"]

    def test_every_function_is_there_and_takes_what_nvshmems_takes(self):
        rows = list(names.functions())
        self.assertGreater(len(rows), 2000)
        self.assertEqual(len({name for name, _, _ in rows}), len(rows))
        program = self.write("names.cu", names.source(rows))
        # An architecture takes minutes: all of them in the soak.
        architectures = ARCHITECTURES if os.environ.get("SHMEMCTL_SOAK") else ARCHITECTURES[-1:]
        code, said = self.nvcc(*gencode(*architectures), "-Xcompiler", "-Wall,-Wextra,-Werror", "-c", program, "-o",
                               "names.o")
        self.assertEqual((code, said), (0, ""))
        # The device link: what is declared and nowhere defined is an error.
        code, said = self.nvcc(*gencode(*architectures), "-dlink", "names.o", "-o", "names.dlink.o", "-L", TREE / "lib",
                               "-lnvshmem_device")
        self.assertEqual((code, said), (0, ""))

    def test_the_comparison_can_fail(self):
        program = self.write("wrong.cu", names.source([("nvshmem_int_p", "void", "int*, long, int")]))
        code, said = self.nvcc(*gencode("90"), "-c", program, "-o", "wrong.o")
        self.assertNotEqual(code, 0)
        self.assertIn("nvshmem_int_p", said)
        program = self.write("missing.cu", '#include <nvshmem.h>\nextern "C" __device__ int nvshmem_no_such();\n'
                             "__global__ void call(int* at) { *at = nvshmem_no_such(); }\n")
        code, said = self.nvcc(*gencode("90"), "-c", program, "-o", "missing.o")
        self.assertEqual((code, said), (0, ""))
        code, said = self.nvcc(*gencode("90"), "-dlink", "missing.o", "-o", "missing.dlink.o", "-L", TREE / "lib",
                               "-lnvshmem_device")
        self.assertNotEqual(code, 0)
        self.assertIn("nvshmem_no_such", said)

    def test_blocks_of_1024_threads_can_start(self):
        rows = some_of_each(names.functions())
        program = self.write("calls.cu", names.calls(rows))
        code, said = self.nvcc(*gencode("90"), "-c", program, "-o", "calls.o")
        self.assertEqual((code, said), (0, ""))
        code, said = self.nvcc(*gencode("90"), "-dlink", "calls.o", "-o", "calls.dlink.o", "-L", TREE / "lib",
                               "-lnvshmem_device", "-Xnvlink", "-v")
        self.assertEqual(code, 0, said)
        taken = dict(re.findall(r"Function properties for '(\w+)':\n.*used (\d+) registers", said))
        self.assertEqual({f"call_{name}" for name, _, _ in rows} - taken.keys(), set())
        too_many = {name: number for name, number in taken.items() if int(number) > MOST_REGISTERS}
        self.assertEqual(too_many, {})

    def test_kernels_in_several_files(self):
        objects = []
        for name in ("one", "other"):
            text = ("#include <nvshmem.h>\n#include <nvshmemx.h>\n"
                    f"__global__ void {name}(int* to) {{\n  nvshmem_int_p(to, nvshmem_my_pe(), 0);\n"
                    "  nvshmemx_barrier_all_block();\n"
                    "  nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, to, to, 1);\n}\n")
            if name == "other":
                text += ("__global__ void one(int*);\nint main() {\n  nvshmem_init();\n  one<<<1, 32>>>(nullptr);\n"
                         "  other<<<1, 32>>>(nullptr);\n  nvshmem_barrier_all();\n  nvshmem_finalize();\n}\n")
            code, said = self.nvcc(*gencode("90"), "-c", self.write(f"{name}.cu", text), "-o", f"{name}.o")
            self.assertEqual((code, said), (0, ""))
            objects.append(f"{name}.o")
        code, said = self.nvcc(*gencode("90"), *objects, "-o", "both", *self.link_line())
        self.assertEqual(code, 0, said)

    def test_what_programs_have_from_the_headers_alone(self):
        """pplx-kernels gets cooperative groups from them, DeepEP V1 the alias cg, NVSHMEM's examples assert, its
        perftest the macro."""
        program = self.write("rely.cu", "#include <nvshmem.h>\n__global__ void meet() {\n"
                             "  assert(nvshmem_n_pes() > 0);\n  cooperative_groups::this_grid().sync();\n"
                             "  cg::this_grid().sync();\n}\nnamespace cg = cooperative_groups;\n"
                             "int main() {\n  NVSHMEMI_ERROR_PRINT(\"%d of %s\\n\", 1, \"two\");\n"
                             "  meet<<<1, 1>>>();\n  return strlen(\"\") == 0 ? EXIT_SUCCESS : errno;\n}\n")
        code, said = self.nvcc(*gencode("90"), "-c", program, "-o", "rely.o")
        self.assertEqual((code, said), (0, ""))

    def test_the_seam_of_deepep(self):
        """Its five functions, compiled among files that have the names of DeepEP's."""
        for name in ("configs.cuh", "exception.cuh", "utils.cuh"):
            self.write(name, "#include <nvshmem.h>\n#include <device_host_transport/nvshmem_common_ibgda.h>\n"
                       "#include <non_abi/device/threadgroup/nvshmemi_common_device_defines.cuh>\n")
        program = self.write("seam.cu", "#include \"ibgda_device.cuh\"\nusing namespace deep_ep;\n"
                             "__global__ void send(uint64_t to, uint64_t from, int* count, uint64_t* at) {\n"
                             "  nvshmemi_ibgda_put_nbi_warp<true>(to, from, 64, 1, 0, threadIdx.x % 32, 0);\n"
                             "  nvshmemi_ibgda_put_nbi_warp(to, from, 64, 1, 0, threadIdx.x % 32, 0);\n"
                             "  nvshmemi_ibgda_amo_nonfetch_add(count, -1, 1, 3);\n"
                             "  nvshmemi_ibgda_amo_nonfetch_add(at, 2, 1, 3, true);\n"
                             "  nvshmemi_ibgda_rma_p(count, 5, 1, 3);\n  nvshmemi_ibgda_quiet(1, 3);\n"
                             "  *at = nvshmemi_get_p2p_ptr(to, 0, 1) + ibgda_get_state()->num_rc_per_pe *\n"
                             "        ibgda_get_state()->num_devices_initialized;\n}\n")
        seam = ("-I", self.folder, "-I", TREE / "include" / "deepep_v1", "-DNVSHMEM_COMPAT_IBGDA_SEAM")
        code, said = self.nvcc(*gencode("90"), *seam, "-c", program, "-o", "seam.o")
        self.assertEqual((code, said), (0, ""))
        code, said = self.nvcc(*gencode("90"), "-dlink", "seam.o", "-o", "seam.dlink.o", "-L", TREE / "lib",
                               "-lnvshmem_device")
        self.assertEqual((code, said), (0, ""))

    def test_an_older_standard_is_named(self):
        program = self.write("old.cu", "#include <nvshmem.h>\n__global__ void call() { nvshmem_quiet(); }\n")
        code, said = self.nvcc(*gencode("90"), "-c", program, "-o", "old.o", standard="c++14")
        self.assertNotEqual(code, 0)
        self.assertIn("-std=c++17", said)


if __name__ == "__main__":
    unittest.main()
