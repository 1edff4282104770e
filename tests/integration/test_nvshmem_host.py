"""Host code by NVSHMEM's names (nvshmem.h), compiled as a user would, and run over a fake CUDA driver."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import launchers
import nvshmem_host_names
from support import BINARY, SOURCE, clean_environment, error_lines
from test_gpu_programs import BUILD, FAKE_CUDA, NVCC, SANITIZERS, must

TREE = BUILD / "nvshmem-compat"
CUDA = pathlib.Path(NVCC).resolve().parents[1] / "include" if NVCC else None
HAS_GPU = os.path.exists("/dev/nvidiactl")
needs_library = unittest.skipUnless((TREE / "lib" / "libnvshmem_compat.a").exists(),
                                    "no nvshmem-compat: a build without CUDA, or of the binary alone")
NAME = re.compile(r"\b(nvshmem[xi]?_\w+)\s*\(")


class Compiled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def flags(self, tree=TREE):
        return ["-I", tree / "include", "-isystem", CUDA, "-Wall", "-Wextra", "-pedantic", "-Werror"]

    def links(self, tree=TREE):
        # The symbol is what Open MPI's OpenSHMEM asks of a program.
        return ["-L", tree / "lib", *SANITIZERS, "-l:libnvshmem_host.a", "-Wl,--export-dynamic-symbol=_end"]


@needs_library
class Names(Compiled):
    def test_each_function_is_declared_and_defined(self):
        for language, compiler, standards in (("c++", "c++", ("c++11", "c++17", "c++20")), ("c", "cc", ("c99", "c17"))):
            source = self.folder / f"table.{'cpp' if language == 'c++' else 'c'}"
            source.write_text(nvshmem_host_names.program(language), encoding="utf-8")
            for standard in standards:
                with self.subTest(standard=standard):
                    must(compiler, f"-std={standard}", *self.flags(), source, "-o", self.folder / "table", *self.links())
                    must(self.folder / "table", silent=True)

    def test_the_table_has_each_declaration(self):
        source = self.folder / "include.cpp"
        source.write_text("#include <nvshmem_compat/host.h>\n", encoding="utf-8")
        text = must("c++", "-E", "-P", *self.flags(), source)
        names = [name for name, _, _ in nvshmem_host_names.table()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(NAME.findall(text)), set(names))

    def test_headers_of_hosts_alone(self):
        for header in ("nvshmem_host.h", "host/nvshmem_api.h", "host/nvshmemx_api.h", "host/nvshmem_coll_api.h",
                       "host/nvshmemx_coll_api.h", "device_host/nvshmem_common.cuh"):
            for prefix in ("", "#define NVSHMEM_HOSTLIB_ONLY\n"):
                source = self.folder / "one.cpp"
                source.write_text(f"{prefix}#include <{header}>\nint main() {{ return nvshmem_n_pes(); }}\n",
                                  encoding="utf-8")
                must("c++", "-std=c++17", *self.flags(), "-c", source, "-o", self.folder / "one.o", silent=True)

    def refused(self, text, *flags):
        source = self.folder / "refused.cpp"
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(["c++", "-std=c++17", "-fsyntax-only", *map(str, self.flags()), *flags, str(source)],
                              capture_output=True, text=True, check=False, timeout=120)
        self.assertNotEqual(done.returncode, 0, text)
        return done.stderr

    def test_what_is_not_there_says_which_tier(self):
        for call, tier in (("nvshmemx_flush()", "tier C"), ("nvshmemx_flush_on_stream(nullptr)", "tier C"),
                           ("nvshmemx_qp_create(1, nullptr)", "tier C"), ("nvshmemx_qp_quiet_warp(0)", "tier C"),
                           ("nvshmemx_qp_int_put_nbi_block(p, p, 4, 1, 0)", "tier C"),
                           ("nvshmemx_region_start(p)", "tier C"), ("nvshmemx_ask_smem(p)", "tier C"),
                           ("nvshmemx::tile_put(p)", "tier C"), ("nvshmemx::make_shape(1, 2)", "tier C"),
                           ("nvshmemx::shape<int, int> s; (void)s", "tier C")):
            with self.subTest(call=call):
                said = self.refused(f"#include <nvshmemx.h>\nint main() {{ int* p = nullptr; (void)p; {call}; }}\n")
                self.assertRegex(said, rf"is not in this library: .*{tier}")
        for header, tier in (("device_host_transport/nvshmem_common_ibgda.h", "tier B"),
                             ("non_abi/device/threadgroup/nvshmemi_common_device_defines.cuh", "tier B"),
                             ("device_host/nvshmem_tensor.h", "tier C")):
            with self.subTest(header=header):
                self.assertIn(tier, self.refused(f"#include <{header}>\n"))

    def test_build_systems_can_read_the_version(self):
        # cuDecomp's CMake searches this file for these names and a space and a number behind each.
        text = (TREE / "include" / "non_abi" / "nvshmem_version.h").read_text(encoding="utf-8")
        self.assertEqual([re.search(rf"NVSHMEM_VENDOR_{part}_VERSION ([0-9]*)", text)[1]
                          for part in ("MAJOR", "MINOR", "PATCH")], ["3", "4", "5"])
        # Its host code takes the version from the name, behind the first v.
        header = (TREE / "include" / "nvshmem_compat" / "version.h").read_text(encoding="utf-8")
        name = re.search(r'NVSHMEM_VENDOR_STRING "(.*)"', header)[1]
        self.assertRegex(name[name.index("v"):], r"^v3\.4\.5\b")

    def test_macros_say_whose_library_it_is(self):
        source = self.folder / "macros.cpp"
        source.write_text("#include <nvshmem.h>\n#ifndef NVSHMEM_VENDOR_SHMEMCTL\n#error whose?\n#endif\n"
                          "static_assert(NVSHMEM_VENDOR_MAJOR_VERSION == 3, \"\");\n"
                          "static_assert(sizeof(nvshmemx_uniqueid_t) == 128, \"\");\n"
                          "static_assert(sizeof(nvshmemx_init_attr_t) == 144, \"\");\n"
                          "static_assert(sizeof(nvshmem_team_config_t) == 64, \"\");\n", encoding="utf-8")
        must("c++", "-std=c++17", *self.flags(), "-fsyntax-only", source, silent=True)


@needs_library
@unittest.skipUnless(FAKE_CUDA, "no fake CUDA driver: a build without CUDA")
class OverAFakeDriver(Compiled):
    """tests/nvshmem/host.cpp, in a driver whose GPUs run no kernels."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = cls.folder / "host"
        must("c++", "-std=c++20", *cls.flags(cls), SOURCE / "tests" / "nvshmem" / "host.cpp", "-o", cls.program,
             *cls.links(cls))

    def variables(self, **more):
        return {"SHMEMCTL_CUDA_LIBRARY": FAKE_CUDA, "SHMEMCTL_SYMMETRIC_SIZE": "64M", "SHMEMCTL_HEAP_CHUNK": "2M",
                "SHMEMCTL_TIMEOUT": "60", **more}

    def run_pes(self, n_pes, *words, options=(), **variables):
        done = subprocess.run([BINARY, "run", "-n", str(n_pes), *options, self.program, *words], capture_output=True,
                              text=True, env=clean_environment(**self.variables(**variables)), timeout=120, check=False,
                              cwd=self.folder)
        return done.returncode, done.stdout, done.stderr

    def test_conforms(self):
        for heap in ("vmm", "ipc", "host"):
            for n_pes in (1, 2, 3):
                with self.subTest(heap=heap, n_pes=n_pes):
                    self.assertEqual(self.run_pes(n_pes, SHMEMCTL_HEAP=heap), (0, "", ""))

    def test_processors_need_not_reach_the_memory(self):
        self.assertEqual(self.run_pes(2, FAKE_CUDA_STRICT="1"), (0, "", ""))

    def test_the_current_device_is_taken(self):
        self.assertEqual(self.run_pes(2, "current"), (0, "", ""))

    def test_by_a_communicator_and_with_openshmem(self):
        for launcher, library, mode in (("mpirun", "libmpi.so.40", "mpi"), ("oshrun", "liboshmem.so.40", "openshmem")):
            if not shutil.which(launcher) or not launchers.has_library(library) or SANITIZERS:
                continue
            for n_pes in (1, 2, 3):
                with self.subTest(mode=mode, n_pes=n_pes):
                    outcome = launchers.launch([launcher, "--oversubscribe", "-n", n_pes, self.program, mode, n_pes],
                                               env=self.variables())
                    self.assertEqual((outcome.code, outcome.errors, outcome.left), (0, [], []), outcome)

    def test_what_limits_the_heap(self):
        """NVSHMEM's variable is no limit, but for a heap that is allocated at the start; our option is one."""
        for heap, variable, code in (("vmm", "NVSHMEM_SYMMETRIC_SIZE", 0), ("host", "NVSHMEM_SYMMETRIC_SIZE", 0),
                                     ("ipc", "NVSHMEM_SYMMETRIC_SIZE", 7), ("vmm", "SHMEMCTL_SYMMETRIC_SIZE", 7)):
            with self.subTest(heap=heap, variable=variable):
                environment = self.variables(SHMEMCTL_HEAP=heap)
                del environment["SHMEMCTL_SYMMETRIC_SIZE"]
                done = subprocess.run([BINARY, "run", "-n", "2", self.program, "grow"], capture_output=True, text=True,
                                      env=clean_environment(**environment, **{variable: "4M"}), timeout=120, check=False,
                                      cwd=self.folder)
                self.assertEqual(done.returncode, code, done.stderr)

    def test_thread_levels(self):
        self.assertEqual(self.run_pes(1, "level"), (0, "", ""))

    def test_over_nodes(self):
        for n_pes, nodes in ((2, 2), (3, 2), (4, 2), (5, 2), (5, 3), (4, 4)):
            with self.subTest(n_pes=n_pes, nodes=nodes):
                self.assertEqual(self.run_pes(n_pes, "nodes", str(nodes), options=("--nodes", str(nodes))), (0, "", ""))

    def test_by_unique_id_without_a_launcher(self):
        for size in (1, 2, 3):
            with self.subTest(size=size):
                file = self.folder / f"id-{size}"
                pes = [subprocess.Popen([self.program, "uid", str(rank), str(size), file], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=clean_environment(**self.variables()))
                       for rank in range(size)]
                for pe in pes:
                    out, err = pe.communicate(timeout=120)
                    self.assertEqual((pe.returncode, out, err), (0, "", ""))

    def test_mistakes(self):
        for word, texts in (("pe", ("PE 2", "the job has PEs 0 to 1")), ("address", ("it is not in the symmetric heap",)),
                            ("dest", ("it is not in the symmetric heap",)),
                            ("comparison", ("comparison 6",)), ("signal", ("signal operator 8",)),
                            ("root", ("root 2", "the team has PEs 0 to 1")), ("stream-pe", ("PE -1",)),
                            ("device", ("it is the calling thread's current device, but this PE uses GPU",)),
                            ("module", ("its kernels expect a device state of",)), ("again", ("has already finalized it",)),
                            ("after", ("already finalized",)), ("before", ("not initialized",)),
                            ("no-attributes", ("attr is NULL",)), ("no-communicator", ("mpi_comm is NULL",)),
                            ("two-ways", ("several flags",)), ("no-id", ("there is no such PE, or no id",)),
                            ("foreign-id", ("nvshmemx_get_uniqueid of this library did not make it",))):
            with self.subTest(mistake=word):
                code, _, err = self.run_pes(2, word)
                self.assertEqual(code, 2, err)
                lines = error_lines(re.sub(r"(?m)^\[\d+\] ", "", err))
                for text in texts:
                    self.assertTrue(any(text in line for line in lines), (text, err))
                self.assertIn("shmemctl: fix: ", err)

    def test_buffers(self):
        code, out, err = self.run_pes(1, "buffers")
        self.assertEqual((code, out), (0, ""))
        for text in ("maps no memory of the program into the symmetric heap", "needs no registration",
                     "the range is empty"):
            self.assertIn(text, err)

    @unittest.skipIf(HAS_GPU, "a machine with a GPU")
    def test_without_a_driver(self):
        code, _, err = self.run_pes(2, SHMEMCTL_CUDA_LIBRARY="libcuda-of-nobody.so.1")
        self.assertEqual(code, 3, err)
        self.assertIn("GPUs in phase gpu", err)


@needs_library
@unittest.skipUnless(NVCC, "no nvcc: a build without CUDA")
class Installed(Compiled):
    def test_by_cmake(self):
        """Both names of the package, from what is installed: the build folder is not looked at."""
        prefix = self.folder / "tree"
        must("cmake", "--install", BUILD, "--prefix", prefix)
        tree = prefix / "nvshmem-compat"
        for file in [*tree.rglob("*.h"), *tree.rglob("*.cuh"), *tree.rglob("*.cmake")]:
            self.assertNotIn(str(BUILD), file.read_text(encoding="utf-8"), file)
        merged = tree / "lib" / "libshmemctl_all.a"
        self.assertTrue(merged.is_file(), f"{merged} leads to {merged.resolve()}")
        self.assertTrue(merged.resolve().is_relative_to(prefix.resolve()))
        self.assertFalse((prefix / "include" / "nvshmem.h").exists())
        for package in ("NVSHMEM", "nvshmem"):
            with self.subTest(package=package):
                project = self.folder / package
                project.mkdir()
                (project / "main.cpp").write_text("#include <nvshmem.h>\nint main() { return nvshmemx_init_status(); }\n",
                                                  encoding="utf-8")
                (project / "CMakeLists.txt").write_text(
                    "cmake_minimum_required(VERSION 3.25)\nproject(program LANGUAGES CXX)\n"
                    f"find_package({package} 3.0 REQUIRED)\nadd_executable(program main.cpp)\n"
                    "target_link_libraries(program PRIVATE nvshmem::nvshmem_host)\n"
                    "add_executable(whole main.cpp)\ntarget_link_libraries(whole PRIVATE nvshmem::nvshmem)\n",
                    encoding="utf-8")
                must("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={tree}",
                     f"-DCUDAToolkit_ROOT={CUDA.parent}", f"-DCMAKE_EXE_LINKER_FLAGS={' '.join(SANITIZERS)}")
                must("cmake", "--build", project / "build")
                for name in ("program", "whole"):
                    must(project / "build" / name, silent=True)


if __name__ == "__main__":
    unittest.main()
