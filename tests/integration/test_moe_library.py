"""shmemctl/moe.h: the header, a program over a fake driver, and the example, against an installed tree."""
import os
import re
import shutil
import unittest

from support import SOURCE
from test_gpu_programs import FAKE_CUDA, NVCC, SANITIZERS, Installed, must, needs_fake, needs_nvcc

EXAMPLE = SOURCE / "docs" / "examples" / "moe_layer.cu"
PAGE = SOURCE / "docs" / "explanation" / "moe_library.md"
HAS_GPU = os.path.exists("/dev/nvidiactl")


class MoeProgram(Installed):
    PROGRAM = SOURCE / "tests" / "openshmem" / "moe.c"
    COMPILER = ("cc", "-std=c99")

    def assert_well(self, result):
        self.assertEqual(result, (0, "", ""))


class Header(MoeProgram):
    def test_alone_in_each_language(self):
        for suffix, compilers, standards in ((".c", ("cc", "clang"), ("c99", "c11", "c17")),
                                             (".cpp", ("c++", "clang++"), ("c++11", "c++17", "c++20"))):
            source = self.folder / ("alone" + suffix)
            source.write_text("#include <shmemctl/moe.h>\n"
                              "shmemctl_moe_config_t config = SHMEMCTL_MOE_CONFIG_INIT;\n"
                              "shmemctl_moe_tokens_t tokens = SHMEMCTL_MOE_TOKENS_INIT;\n"
                              "shmemctl_moe_result_t result = SHMEMCTL_MOE_RESULT_INIT;\n"
                              "shmemctl_moe_received_t received = SHMEMCTL_MOE_RECEIVED_INIT;\n"
                              "shmemctl_moe_settings_t settings = SHMEMCTL_MOE_SETTINGS_INIT;\n", encoding="utf-8")
            for compiler in filter(shutil.which, compilers):
                for standard in standards:
                    with self.subTest(compiler=compiler, standard=standard):
                        must(compiler, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-c", source,
                             "-o", self.folder / "alone.o", "-I", self.include, silent=True)

    def test_every_function_is_in_the_library_and_on_the_page(self):
        text = (self.include / "shmemctl" / "moe.h").read_text(encoding="utf-8")
        names = re.findall(r"^(?:int|const char\*) (shmemctl_moe_\w+)\(", text, re.MULTILINE)
        self.assertGreater(len(names), 15)
        page = PAGE.read_text(encoding="utf-8")
        for name in names:
            self.assertRegex(page, rf"`{name}`|`_{name.removeprefix('shmemctl_moe_')}`")
        source = self.folder / "all.c"
        source.write_text("#include <stdio.h>\n#include <shmemctl/moe.h>\nint main(void) {\n"
                          + "".join(f"  printf(\"%d\", {name} != 0);\n" for name in names)
                          + "  return 0;\n}\n", encoding="utf-8")
        must("cc", "-std=c11", "-Wno-address", source, "-o", self.folder / "all", "-I", self.include,
             *SANITIZERS, "-L", self.library, "-lshmemctl")


@needs_fake
class OverAFakeDriver(MoeProgram):
    """All that the host decides; where there is no GPU, up to the launch that CUDA refuses."""

    def conforms(self, **variables):
        words = () if HAS_GPU else ("launch",)
        for n_pes in (1, 2, 3):
            with self.subTest(n_pes=n_pes, variables=variables):
                self.assert_well(self.run_pes(n_pes, self.program, *words, SHMEMCTL_CUDA_LIBRARY=FAKE_CUDA,
                                              **variables))

    def test_conforms(self):
        for heap in ("vmm", "ipc", "host"):
            self.conforms(SHMEMCTL_HEAP=heap)

    def test_over_a_network(self):
        self.conforms(SHMEMCTL_DEVICE_PATH="proxy")


class WithoutGpus(MoeProgram):
    def test_errors_are_returned(self):
        self.assert_well(self.run_pes(2, self.program, "optional", SHMEMCTL_CUDA_LIBRARY="libcuda-of-nobody.so.1"))


@needs_nvcc
class Example(MoeProgram):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.layer = cls.folder / "layer"
        must(NVCC, "-arch=sm_90", "-Xcompiler", "-Wall,-Wextra,-Werror", EXAMPLE, "-o", cls.layer,
             "-I", cls.include, cls.library / "libshmemctl.a", silent=True, cwd=cls.folder)

    def test_runs(self):
        for words, said in (((), "high throughput are right"), (("low",), "low latency are right"),
                            (("high", "graph"), "high throughput in a graph are right"),
                            (("low", "graph"), "low latency in a graph are right")):
            with self.subTest(words=words):
                result = self.run_pes(2, self.layer, *words)
                if HAS_GPU:
                    self.assertEqual((result[0], result[2]), (0, ""))
                    self.assertIn(said, result[1])
                else: # the job has no GPU, and every PE reports that before any kernel is started
                    self.assert_error(result, 3, "GPUs in phase gpu", "libcuda.so.1")

    def test_the_page_shows_what_is_compiled(self):
        example = re.sub(r"\s+", " ", EXAMPLE.read_text(encoding="utf-8"))
        shown = re.findall(r"```cuda\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        self.assertTrue(shown)
        for block in shown:
            self.assertIn(re.sub(r"\s+", " ", block).strip(), example)


if __name__ == "__main__":
    unittest.main()
