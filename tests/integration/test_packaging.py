"""packaging/: the Containerfile, the Spack recipe and the module file, as far as they can be tried without a
container engine, Spack and Lmod."""
import json
import os
import re
import shlex
import shutil
import subprocess
import types
import unittest

from support import SOURCE, clean_environment
from test_install import CopiedBuild

PACKAGING = SOURCE / "packaging"
TOP = (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
DEPENDENCIES = (SOURCE / "cmake/Dependencies.cmake").read_text(encoding="utf-8")
NOBODY = 65534


def instructions():
    """[(instruction, arguments)] of the Containerfile, lines that go on joined."""
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, " ".join(rest.split())) for name, rest in lines]


def steps():
    """The commands of all RUN instructions."""
    return [step.strip() for name, rest in instructions() if name == "RUN" for step in rest.split("&&")]


class Containerfile(unittest.TestCase):
    def test_each_variable_is_declared_where_it_is_used(self):
        before_stages, of_stage, stages = set(), set(), []
        for name, rest in instructions():
            if name == "FROM":
                for variable in re.findall(r"\$\{(\w+)\}", rest):
                    self.assertIn(variable, before_stages)
                stages.append(rest.split(" AS ")[1] if " AS " in rest else "")
                of_stage = set()
                continue
            if name == "ARG":
                (of_stage if stages else before_stages).add(rest.split("=")[0])
            for variable in re.findall(r"\$\{(\w+)\}", rest):
                self.assertIn(variable, of_stage, rest)
            for stage in re.findall(r"--from=(\S+)", rest):
                self.assertIn(stage, stages[:-1])
        self.assertEqual(len(stages), 2, "one builds, one runs")

    def test_what_the_steps_call_is_there(self):
        presets = json.loads((SOURCE / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
        folders = {preset["name"]: preset["binaryDir"].replace("${sourceDir}/", "") for preset in presets
                   if "binaryDir" in preset}
        installed = "".join((SOURCE / f"cmake/{name}.cmake").read_text(encoding="utf-8") for name in ("Install", "Package"))
        seen = set()
        for step in steps():
            words = shlex.split(step)
            if words[0] == "scripts/sysroot.sh":
                self.assertTrue(os.access(SOURCE / words[0], os.X_OK))
                # Where cmake/portable.cmake looks for it.
                self.assertIn(f"/{words[1]} ABSOLUTE", (SOURCE / "cmake/portable.cmake").read_text(encoding="utf-8"))
            elif words[:2] == ["cmake", "--preset"]:
                self.assertIn(words[2], folders)
                for option in re.findall(r"-D(\w+)=", step):
                    self.assertIn(f"set({option} ", TOP)
            elif words[0] == "cmake":
                self.assertIn(words[2], folders.values())
                if words[1] == "--install":
                    self.assertIn(f"COMPONENT {words[words.index('--component') + 1]}", installed)
                else:
                    self.assertIn(words[words.index("--target") + 1],
                                  (SOURCE / "cli/CMakeLists.txt").read_text(encoding="utf-8"))
            else:
                self.assertEqual(words[0], "apt-get", step)
            seen.add(" ".join(words[:2]) if words[0] == "cmake" else words[0])
        self.assertEqual(seen, {"apt-get", "scripts/sysroot.sh", "cmake --preset", "cmake --build", "cmake --install"})

    @unittest.skipUnless(shutil.which("apt-cache"), "no apt-cache")
    def test_its_packages_exist_and_have_the_tools(self):
        (step,) = [step for step in steps() if step.startswith("apt-get install")]
        packages = [word for word in step.split()[2:] if not word.startswith("-")]
        known = subprocess.run(["apt-cache", "show", *packages], capture_output=True, text=True, check=False).stdout
        if "Package: " not in known:
            self.skipTest("apt has no lists of packages")
        self.assertEqual({package for package in packages if f"\nPackage: {package}\n" not in "\n" + known}, set())
        # What scripts/sysroot.sh asks for, and which of these packages, or of every Debian, has it.
        needs = re.search(r"debian_needs ([^|]+)", (SOURCE / "scripts/sysroot.sh").read_text(encoding="utf-8")).group(1)
        of_package = {"gcc": "g++", "readelf": "g++", "python3": "python3"}
        always = {"apt-get", "dpkg-deb", "tar", "sha256sum", "realpath"}
        self.assertEqual({tool for tool in needs.split() if tool not in always and of_package.get(tool) not in packages}, set())


class Dependencies(unittest.TestCase):
    """The packages that scripts/packages.sh installs for a build, and README's table of them."""

    def test_readme_says_why_for_each(self):
        text = (SOURCE / "scripts/packages.sh").read_text(encoding="utf-8")
        lists = dict(re.findall(r'^(build_packages|unpacked_packages)="([^"]+)"', text, re.MULTILINE))
        packages = {package for packages in lists.values() for package in packages.split()}
        self.assertGreater(len(packages), 10)
        page = (SOURCE / "README.md").read_text(encoding="utf-8")
        table = page.split("### What the build needs")[1].split("\n## ")[0]
        named = set()
        for row in re.findall(r"^\|(.+)\|(.+)\|$", table, re.MULTILINE):
            if row[1].strip(" -"):
                named |= set(re.findall(r"`([^`]+)`", row[0]))
        self.assertEqual(named, packages)

    @unittest.skipUnless(shutil.which("apt-get"), "no apt-get")
    def test_nothing_drags_in_desktops_or_databases(self):
        text = (SOURCE / "scripts/packages.sh").read_text(encoding="utf-8")
        packages = re.search(r'^build_packages="([^"]+)"', text, re.MULTILINE).group(1).split()
        # On a system that has nothing yet: what apt would install in all.
        done = subprocess.run(["apt-get", "install", "--simulate", "--no-install-recommends", "-o", "Dir::State::Status=/dev/null",
                               *packages], capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
        if done.returncode:
            self.skipTest("apt has no lists of packages: " + done.stderr.strip())
        wanted = re.findall(r"^Inst (\S+)", done.stdout, re.MULTILINE)
        self.assertIn("g++", wanted)
        self.assertEqual([name for name in wanted if re.search("qt5|qt6|poco|mariadb|mysql|postgres|libpq|odbc", name)], [])


class Licenses(unittest.TestCase):
    def test_of_all_that_is_linked_in(self):
        """cmake/Package.cmake installs them out of the sysroot; packaging/licenses/README.md lists them."""
        text = (SOURCE / "cmake/Package.cmake").read_text(encoding="utf-8")
        installed = set(re.search(r"foreach\(package ([^)]+)\)", text).group(1).split())
        page = (PACKAGING / "licenses/README.md").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)), installed)
        sums = (SOURCE / "scripts/portable/sysroot.sums").read_text(encoding="utf-8")
        in_sysroot = {line.split()[1] for line in sums.splitlines() if not line.startswith("#")}
        # For the libraries that CMake links or includes: the package whose headers and archive it
        # takes.
        for library in re.findall(r"(?:find_package|find_path|find_library)\((\w+)", DEPENDENCIES):
            word = library.lower().split("_")[0]
            if word in ("threads", "ucx"):
                continue # the C library's; opened at run time
            self.assertTrue([package for package in installed if word in package.replace("-", "")], library)
        self.assertEqual({package for package in installed - in_sysroot if not package.startswith("gcc-")}, set())


class RunStage(CopiedBuild):
    """The last step of the build stage in this build's folder, and what the image then starts."""

    def setUp(self):
        super().setUp()
        binary = self.build / "shmemctl"
        real = binary.resolve()
        binary.unlink()
        shutil.copy(real, binary)  # an installed link would lead out of the image

    def install_as_the_image_does(self):
        (step,) = [shlex.split(step) for step in steps() if step.startswith("cmake --install")]
        done = self.install(*step[step.index("--component"):step.index("--component") + 2])
        self.assertEqual(done.returncode, 0, done.stdout)
        (copied,) = [rest.split() for name, rest in instructions() if name == "COPY" and "--from" in rest]
        self.assertEqual(step[step.index("--prefix") + 1], copied[1])
        return copied[2]

    def test_the_image_starts_what_was_installed_as_an_ordinary_user(self):
        target = self.install_as_the_image_does()
        lines = dict(instructions())
        self.assertEqual(lines["USER"], "nobody")
        entry, command = json.loads(lines["ENTRYPOINT"]), json.loads(lines["CMD"])
        program = self.prefix / os.path.relpath(entry[0], target)
        for path in (self.folder, self.prefix, program.parent):
            path.chmod(0o755)
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        for arguments, codes in ((["--version"], (0,)), ([*entry[1:], *command, "--level", "1"], (0, 1, 3))):
            done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False,
                                  cwd="/", env=clean_environment(HOME="/nonexistent"), **who)
            self.assertIn(done.returncode, codes, done.stderr)
            self.assertNotIn("shmemctl: this is a bug", done.stderr)

    def test_an_image_has_no_library_for_development(self):
        self.install_as_the_image_does()
        names = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if path.is_file()}
        self.assertEqual({name for name in names if name.endswith((".a", ".h", ".cuh", ".cmake", ".pc"))}, set())
        self.assertIn("bin/shmemctl", names)

    def test_the_module_file_names_what_is_installed(self):
        self.install_as_the_image_does()
        text = (PACKAGING / "modulefiles/shmemctl.lua").read_text(encoding="utf-8")
        paths = dict(re.findall(r'prepend_path\("(\w+)", pathJoin\(root, "([^"]+)"\)\)', text))
        self.assertEqual(set(paths), {"PATH", "MANPATH", "FPATH", "XDG_DATA_DIRS"})
        self.assertTrue((self.prefix / paths["PATH"] / "shmemctl").exists())
        self.assertTrue((self.prefix / paths["MANPATH"] / "man1/shmemctl.1").exists())
        self.assertTrue((self.prefix / paths["FPATH"] / "_shmemctl").exists())
        # Where bash-completion and fish look below that variable.
        for completion in ("bash-completion/completions/shmemctl", "fish/vendor_completions.d/shmemctl.fish"):
            self.assertTrue((self.prefix / paths["XDG_DATA_DIRS"] / completion).exists())


class Module(unittest.TestCase):
    @unittest.skipUnless(shutil.which("lua5.4") or shutil.which("lua"), "no Lua")
    def test_it_is_lua(self):
        calls = "function f(...) end help, whatis, prepend_path = f, f, f\n" \
                "function myModuleVersion() return '1.2' end\nfunction pathJoin(...) return table.concat({...}, '/') end\n"
        text = calls + (PACKAGING / "modulefiles/shmemctl.lua").read_text(encoding="utf-8")
        done = subprocess.run([shutil.which("lua5.4") or "lua", "-"], input=text, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Spec:
    """Of Spack's class, what the recipe asks."""

    def __init__(self, cuda, architectures):
        self.cuda = cuda
        self.variants = {"cuda_arch": types.SimpleNamespace(value=architectures)}

    def satisfies(self, what):
        return {"+cuda": self.cuda, "cuda_arch=none": self.variants["cuda_arch"].value == ("none",)}[what]


class Spack(unittest.TestCase):
    """packaging/spack/package.py, with stand-ins for Spack's directives."""

    def load(self):
        calls = []

        def directive(name):
            return lambda *arguments, **keywords: calls.append((name, arguments, keywords))

        class Package:
            spec = None

            def define(self, name, value):
                return f"-D{name}={'ON' if value is True else 'OFF' if value is False else value}"

            def define_from_variant(self, name, variant):
                return self.define(name, self.spec.satisfies(f"+{variant}"))

        names = {name: directive(name) for name in ("license", "version", "variant", "depends_on", "conflicts", "generator")}
        names.update(CMakePackage=type("CMakePackage", (Package,), {}), CudaPackage=type("CudaPackage", (), {}))
        text = (PACKAGING / "spack/package.py").read_text(encoding="utf-8")
        exec(compile(text.replace("from spack.package import *", ""), "package.py", "exec"), names)
        return names["Shmemctl"], calls

    def test_versions_are_those_that_cmake_asks_for(self):
        _, calls = self.load()
        needs = [arguments[0] for name, arguments, _ in calls if name == "depends_on"]

        def oldest(package):
            (need,) = [need for need in needs if re.match(rf"{package}\b(?!-)", need)]
            return re.search(r"@([0-9.]+):", need).group(1)

        self.assertEqual(oldest("cmake"), re.search(r"cmake_minimum_required\(VERSION ([0-9.]+)\)", TOP).group(1))
        self.assertEqual(oldest("nlohmann-json"), re.search(r"nlohmann_json ([0-9.]+)", DEPENDENCIES).group(1))
        self.assertEqual(oldest("cli11"), re.search(r"CLI11 ([0-9.]+)", DEPENDENCIES).group(1))
        cuda = (SOURCE / "cmake/Cuda.cmake").read_text(encoding="utf-8")
        self.assertEqual(oldest("cuda"), re.search(r"OLDEST_CUDA ([0-9.]+)\)", cuda).group(1))
        # Each library that CMake looks for.
        for package in ("hwloc", "expat", "zstd", "valijson", "boost", "fmt"):
            self.assertRegex(DEPENDENCIES.lower(), package)
            self.assertTrue([need for need in needs if re.match(package, need)], package)

    def test_arguments_for_cmake(self):
        made, _ = self.load()
        package = made()
        for cuda, architectures, expected in (
                (False, ("none",), ["-DSHMEMCTL_CUDA=OFF", "-DSHMEMCTL_TESTS=OFF"]),
                (True, ("none",), ["-DSHMEMCTL_CUDA=ON", "-DSHMEMCTL_TESTS=OFF"]),
                (True, ("80", "90"), ["-DSHMEMCTL_CUDA=ON", "-DSHMEMCTL_TESTS=OFF", "-DCMAKE_CUDA_ARCHITECTURES=80;90"])):
            package.spec = Spec(cuda, architectures)
            self.assertEqual(package.cmake_args(), expected)
        for option in ("SHMEMCTL_CUDA", "SHMEMCTL_TESTS"):
            self.assertIn(f"set({option} ", TOP)


if __name__ == "__main__":
    unittest.main()
