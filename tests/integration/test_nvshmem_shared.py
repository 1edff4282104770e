"""libnvshmem_host.so: shared libraries, such as extensions of Python, that use NVSHMEM's names."""
import re
import subprocess
import sys
import unittest

import nvshmem_host_names
import test_nvshmem_host as host
from support import BINARY, clean_environment
from test_gpu_programs import FAKE_CUDA, NVCC, must

LIBRARY = host.TREE / "lib" / "libnvshmem_host.so"
LAUNCHES = {"nvshmemx_collective_launch", "nvshmemx_collective_launch_query_gridsize"}
HOOKS = {"nvshmemi_register_device_job", "nvshmemi_forget_device_job", "nvshmemi_check_kernels",
         "nvshmemi_launch_refused"}
needs_shared = unittest.skipUnless(LIBRARY.exists(), "no libnvshmem_host.so: a build without CUDA, of the binary "
                                   "alone, with sanitizers, or portable")
EXTENSION = """
#include <nvshmem.h>
extern "C" void begin(void) { nvshmem_init(); }
extern "C" int pes(void) { return nvshmem_n_pes(); }
extern "C" int sum_of_neighbour(void) {
  const int me = nvshmem_my_pe(), to = (me + 1) % nvshmem_n_pes();
  int* const words = static_cast<int*>(nvshmem_malloc(2 * sizeof(int)));
  const int mine[2] = {me + 1, 10 * (me + 1)};
  nvshmem_int_put(words, mine, 2, to);
  nvshmem_barrier_all();
  const int sum = nvshmem_int_g(words, me) + nvshmem_int_g(words + 1, me);
  nvshmem_free(words);
  return sum;
}
extern "C" void end(void) { nvshmem_finalize(); }
extern "C" int status(void) { return nvshmemx_init_status(); }
"""
KERNELS = """
#include <nvshmem.h>
#include <nvshmemx.h>
__global__ void ring(int* to) {
  nvshmem_int_p(to, nvshmem_my_pe(), (nvshmem_my_pe() + 1) % nvshmem_n_pes());
  nvshmemx_barrier_all_block();
}
extern "C" int launch(int* to) {
  void* arguments[] = {&to};
  return nvshmemx_collective_launch(reinterpret_cast<const void*>(ring), dim3(1), dim3(32), arguments, 0, nullptr);
}
extern "C" int status(void) { return nvshmemx_init_status(); }
"""


@needs_shared
class Shared(host.Compiled):
    def extension(self, name):
        source = self.folder / f"{name}.cpp"
        source.write_text(EXTENSION, encoding="utf-8")
        made = self.folder / f"lib{name}.so"
        must("c++", "-std=c++17", "-shared", "-fPIC", *self.flags(), source, "-o", made, "-Wl,-z,defs",
             "-L", LIBRARY.parent, "-lnvshmem_host", f"-Wl,-rpath,{LIBRARY.parent}")
        return made

    def python(self, text, *arguments, n_pes=0, **variables):
        launcher = [BINARY, "run", "-n", str(n_pes)] if n_pes else []
        done = subprocess.run([*map(str, (*launcher, sys.executable, "-c", text, *arguments))], capture_output=True,
                              text=True, timeout=120, check=False, cwd=self.folder,
                              env=clean_environment(**variables))
        return done.returncode, done.stdout, done.stderr

    def test_it_has_the_names_and_no_others(self):
        symbols = {line.split()[-1] for line in must("nm", "-D", "--defined-only", LIBRARY).splitlines()}
        names = {name for name, _, _ in nvshmem_host_names.table()}
        self.assertEqual(symbols, names - LAUNCHES | HOOKS)

    def test_it_is_nobodys_nvshmem_and_needs_no_gpu(self):
        said = must("readelf", "-d", LIBRARY)
        self.assertEqual(re.findall(r"\(SONAME\).*\[(.*)\]", said), ["libnvshmem_host.so"])
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
        self.assertEqual([name for name in needed if re.search(r"cuda|stdc\+\+|nvidia", name)], [])

    def test_its_thread_local_memory_is_made_when_it_is_used(self):
        """The C library keeps 1.6 KiB for libraries that ask for it at the start: too little for a CUDA runtime."""
        self.assertNotIn("STATIC_TLS", must("readelf", "-d", LIBRARY))

    @unittest.skipUnless(FAKE_CUDA, "no fake CUDA driver: a build without CUDA")
    def test_python_opens_an_extension(self):
        extension = self.extension("one")
        text = ("import ctypes, sys\nlibrary = ctypes.CDLL(sys.argv[1])\nlibrary.begin()\n"
                "print(library.pes(), library.sum_of_neighbour())\nlibrary.end()\n")
        for n_pes, sums in ((1, {11}), (2, {11, 22})):
            with self.subTest(n_pes=n_pes):
                code, out, err = self.python(text, extension, n_pes=n_pes, SHMEMCTL_CUDA_LIBRARY=FAKE_CUDA,
                                             SHMEMCTL_SYMMETRIC_SIZE="64M", SHMEMCTL_HEAP_CHUNK="2M")
                self.assertEqual((code, err), (0, ""))
                self.assertEqual({tuple(map(int, re.sub(r"^\[\d+\] ", "", line).split()))
                                  for line in out.splitlines()}, {(n_pes, each) for each in sums})

    @unittest.skipUnless(FAKE_CUDA, "no fake CUDA driver: a build without CUDA")
    def test_two_extensions_have_one_job(self):
        text = ("import ctypes, sys\none, other = (ctypes.CDLL(path) for path in sys.argv[1:])\none.begin()\n"
                "print(other.pes(), other.sum_of_neighbour(), other.status())\nother.end()\nprint(one.status())\n")
        code, out, err = self.python(text, self.extension("one"), self.extension("other"), n_pes=1,
                                     SHMEMCTL_CUDA_LIBRARY=FAKE_CUDA, SHMEMCTL_SYMMETRIC_SIZE="64M")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual([re.sub(r"^\[\d+\] ", "", line) for line in out.splitlines()], ["1 11 2", "0"])

    @unittest.skipUnless(NVCC, "no nvcc: a build without CUDA")
    def test_an_extension_with_kernels(self):
        """It opens without a GPU, and closing it leaves nothing behind that would be called."""
        source = self.folder / "kernels.cu"
        source.write_text(KERNELS, encoding="utf-8")
        made = self.folder / "libkernels.so"
        must(NVCC, "-std=c++17", "-rdc=true", "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", source, "-o", made,
             "-I", host.TREE / "include", "-L", LIBRARY.parent, "-lnvshmem_host", "-lnvshmem_device",
             f"-Xlinker=-rpath,{LIBRARY.parent}", "-Xlinker=-z,defs")
        own = {line.split()[-1] for line in must("nm", "-D", "--defined-only", made).splitlines()}
        self.assertNotIn("nvshmemi_device_job", own)
        text = ("import _ctypes, ctypes, sys\nlibrary = ctypes.CDLL(sys.argv[1])\nprint(library.status())\n"
                "_ctypes.dlclose(library._handle)\nprint(ctypes.CDLL(sys.argv[1]).status())\n")
        self.assertEqual(self.python(text, made), (0, "0\n0\n", ""))


if __name__ == "__main__":
    unittest.main()
