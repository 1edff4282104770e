"""Programs with GPUs, compiled against an installed tree, as a user would."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import BINARY, SOURCE, clean_environment, error_lines

BUILD = pathlib.Path(BINARY).resolve().parent
EXAMPLE = SOURCE / "docs" / "examples" / "gpu_ring.cu"
PAGE = SOURCE / "docs" / "explanation" / "gpu_programs.md"
FAKE_CUDA = os.environ.get("SHMEMCTL_FAKE_CUDA", "")


def from_cache(name):
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(rf"^{name}:\w+=(.*)$", cache, re.MULTILINE)
    return found.group(1) if found else ""


SANITIZERS = [f"-fsanitize={from_cache('SHMEMCTL_SANITIZE')}"] if from_cache("SHMEMCTL_SANITIZE") else []
NVCC = os.environ.get("SHMEMCTL_NVCC", "")
needs_nvcc = unittest.skipUnless(NVCC, "no nvcc: a build without CUDA")
needs_fake = unittest.skipUnless(FAKE_CUDA, "no fake CUDA driver: a build without CUDA")


def must(*command, silent=False, **keywords):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=600, **keywords)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    assert not silent or done.stdout + done.stderr == "", done.stdout + done.stderr
    return done.stdout


class Installed(unittest.TestCase):
    # The host's program, and how it is compiled.
    PROGRAM = SOURCE / "tests" / "openshmem" / "gpu.cpp"
    COMPILER = ("c++", "-std=c++17")

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.prefix = cls.folder / "tree"
        must("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.include = cls.prefix / "include"
        cls.library = next(cls.prefix.glob("lib*/**/libshmemctl.a")).parent
        cls.program = cls.folder / "gpu"
        must(*cls.COMPILER, "-Wall", "-Wextra", "-pedantic", "-Werror", cls.PROGRAM, "-o", cls.program,
             "-I", cls.include, "-L", cls.library, *SANITIZERS, "-lshmemctl")

    def run_pes(self, n_pes, *command, timeout=120, **variables):
        environment = clean_environment(SHMEMCTL_SYMMETRIC_SIZE="64M", **variables)
        done = subprocess.run([BINARY, "run", "-n", str(n_pes), *map(str, command)], capture_output=True, text=True,
                              env=environment, timeout=timeout, check=False, cwd=self.folder)
        return done.returncode, done.stdout, done.stderr

    def assert_error(self, result, status, *texts):
        code, _, err = result
        self.assertEqual(code, status, err)
        for text in texts:
            self.assertTrue(any(text in line for line in error_lines(re.sub(r"(?m)^\[\d+\] ", "", err))), (text, err))
        self.assertIn("shmemctl: fix: ", err)


class Tree(Installed):
    """The installed tree is complete, and every header in it can be included."""

    def test_each_header_finds_what_it_includes(self):
        headers = [*self.include.rglob("*.h"), *self.include.rglob("*.cuh")]
        self.assertGreater(len(headers), 50)
        for header in headers:
            for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', header.read_text(encoding="utf-8"), re.MULTILINE):
                with self.subTest(header=header.relative_to(self.include), name=name):
                    places = [header.parent / name, self.include / name]
                    found = [place for place in places if place.is_file()]
                    self.assertTrue(found)
                    self.assertTrue(found[0].resolve().is_relative_to(self.include.resolve()))

    def test_the_folder_of_the_build_has_the_same(self):
        for header in self.include.rglob("*.*h"):
            with self.subTest(header=header.name):
                self.assertEqual((BUILD / "include" / header.relative_to(self.include)).read_bytes(),
                                 header.read_bytes())

    def test_nothing_names_where_it_was_built(self):
        for file in [*self.include.rglob("*.*h"), *self.prefix.rglob("*.pc"), *self.prefix.rglob("*.cmake")]:
            text = file.read_text(encoding="utf-8")
            for place in (SOURCE, BUILD, self.prefix):
                self.assertNotIn(str(place), text, file)

    def test_the_page_shows_the_file_that_is_compiled(self):
        shown = re.findall(r"```cuda\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        self.assertEqual(shown, [EXAMPLE.read_text(encoding="utf-8")])


@needs_nvcc
class Kernels(Installed):
    """The example of the documentation, built in each documented way."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ring = cls.folder / "ring"
        must(NVCC, "-arch=sm_90", "-Xcompiler", "-Wall,-Wextra,-Werror", EXAMPLE, "-o", cls.ring,
             "-I", cls.include, cls.library / "libshmemctl.a", silent=True, cwd=cls.folder)

    def assert_runs(self, ring):
        """As far as possible: the job has no GPU, and every PE reports that before any kernel is started."""
        if os.path.exists("/dev/nvidiactl"):
            result = self.run_pes(2, ring)
            self.assertEqual((result[0], result[2]), (0, ""))
            return self.assertIn("2 PEs: both rings are right", result[1])
        result = self.run_pes(2, ring)
        self.assert_error(result, 3, "GPUs in phase gpu", "libcuda.so.1")
        self.assertIn("shmemctl doctor --only driver,gpu", result[2])
        return self.assertEqual(result[1], "")

    def test_by_hand(self):
        self.assert_runs(self.ring)

    def test_only_the_tree_is_read(self):
        for flags in ((), ("-DSHMEMCTL_DEVICE_WITHOUT_NETWORK",)):
            read = must(NVCC, "-M", "-arch=sm_90", *flags, EXAMPLE, "-I", self.include, cwd=self.folder)
            ours = [path for path in read.replace("\\\n", " ").split() if path.startswith((str(SOURCE), str(BUILD)))]
            self.assertEqual(ours, [str(EXAMPLE)])
            self.assertIn("shmemctl/device/kernels/device/", read)

    def test_other_architectures_and_standards(self):
        for flags in (("-arch=sm_80",), ("-arch=sm_90", "-std=c++20"),
                      ("-arch=sm_90", "-DSHMEMCTL_DEVICE_WITHOUT_NETWORK")):
            with self.subTest(flags=flags):
                must(NVCC, *flags, "-c", EXAMPLE, "-o", self.folder / "ring.o", "-I", self.include)

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config")
    def test_by_pkg_config(self):
        places = clean_environment(PKG_CONFIG_PATH=str(self.library / "pkgconfig"))
        flags = must("pkg-config", "--cflags", "--libs", "shmemctl", env=places).split()
        ring = self.folder / "ring-pc"
        must(NVCC, "-arch=sm_90", EXAMPLE, *flags, "-o", ring, silent=True, cwd=self.folder)
        self.assert_runs(ring)

    def test_kernels_in_several_files(self):
        second = self.folder / "second.cu"
        second.write_text("#include <shmemx_device.cuh>\n"
                          "__global__ void meet(const __grid_constant__ shmemctl::DeviceJob job) {\n"
                          "  shmemctl::device::barrier_all<shmemctl::device::Block>(job);\n}\n"
                          "void meet_all() { meet<<<1, 32>>>(shmemx_gpu_job()); }\n", encoding="utf-8")
        for relocatable in ("false", "true"):
            with self.subTest(relocatable=relocatable):
                ring = self.folder / f"ring-{relocatable}"
                must(NVCC, "-arch=sm_90", f"-rdc={relocatable}", EXAMPLE, second, "-I", self.include,
                     self.library / "libshmemctl.a", "-o", ring, silent=True, cwd=self.folder)
                self.assert_runs(ring)

    def test_by_cmake(self):
        """The two lines of the page, in a project that has a file of the same name as one of ours."""
        folder = self.folder / "project"
        (folder / "src" / "abi").mkdir(parents=True)
        (folder / "src" / "abi" / "device_job.h").write_text("#error not this one\n", encoding="utf-8")
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(ring LANGUAGES CXX CUDA)\n"
            f"find_package(shmemctl REQUIRED)\nadd_executable(ring {EXAMPLE})\n"
            "target_include_directories(ring BEFORE PRIVATE ${PROJECT_SOURCE_DIR})\n"
            "target_link_libraries(ring PRIVATE shmemctl::shmemctl)\n", encoding="utf-8")
        must("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
             f"-DCMAKE_CUDA_COMPILER={NVCC}", "-DCMAKE_CUDA_ARCHITECTURES=90")
        must("cmake", "--build", folder / "build")
        self.assert_runs(folder / "build" / "ring")


@needs_fake
class OverAFakeDriver(Installed):
    """The host's part, in a driver whose GPUs run no kernels."""

    def run_over(self, n_pes, *words, **variables):
        return self.run_pes(n_pes, self.program, *words, **{"SHMEMCTL_CUDA_LIBRARY": FAKE_CUDA, **variables})

    def test_conforms(self):
        for heap in ("vmm", "ipc", "host"):
            for n_pes in (1, 2, 3):
                with self.subTest(heap=heap, n_pes=n_pes):
                    self.assertEqual(self.run_over(n_pes, SHMEMCTL_HEAP=heap), (0, "", ""))

    def test_a_deadline_that_was_asked_for(self):
        self.assertEqual(self.run_over(2, SHMEMCTL_TIMEOUT="77"), (0, "", ""))

    def test_checks_that_were_asked_for(self):
        self.assertEqual(self.run_over(2, SHMEMCTL_CHECK="1"), (0, "", ""))

    def test_the_program_chooses_the_device(self):
        for device in ("0", "1", "-1"):
            if device == "-1":
                self.assertNotEqual(self.run_over(1, "device", device)[0], 0) # by turns: it is 0
            else:
                self.assertEqual(self.run_over(2, "device", device), (0, "", ""))
        self.assert_error(self.run_over(2, "device", "2"), 3,
                          "GPU 2, which the program names, does not exist: CUDA shows 2")
        self.assert_error(self.run_over(1, "device", "-2"), 2, "GPU -2", "no such device")

    def test_mistakes(self):
        for word, text in (("plain", "the program was initialised by shmem_init"), ("level", "thread level 4"),
                           ("size", "shmemctl::DeviceJob"), ("team", "SHMEM_TEAM_INVALID"), ("pe", "PE 2"),
                           ("root", "root 2"), ("type", "type 12"), ("operator", "operator 7"),
                           ("bits", "operator 6"), ("comparison", "comparison 0")):
            with self.subTest(mistake=word):
                self.assert_error(self.run_over(2, word), 2, text)

    def test_an_error_report_of_a_kernel_ends_a_computing_program(self):
        result = self.run_over(2, "wait")
        self.assert_error(result, 124, "kernel of GPU 1", "block 6", "waiting for PE 0", "is 11, expected 12")


class WithoutGpus(Installed):
    def test_optional_gpus(self):
        result = self.run_pes(2, self.program, "optional", SHMEMCTL_CUDA_LIBRARY="libcuda-of-nobody.so.1")
        self.assertEqual((result[0], result[2]), (0, ""))
        self.assertRegex(result[1], "libcuda-of-nobody.so.1|no CUDA")

    def test_required_gpus(self):
        self.assert_error(self.run_pes(2, self.program, SHMEMCTL_CUDA_LIBRARY="libcuda-of-nobody.so.1"), 3,
                          "GPUs in phase gpu")

    def test_gpu_calls_without_gpus(self):
        self.assert_error(self.run_pes(1, self.program, "used", SHMEMCTL_CUDA_LIBRARY="libcuda-of-nobody.so.1"), 2,
                          "GPU (host ")


if __name__ == "__main__":
    unittest.main()
