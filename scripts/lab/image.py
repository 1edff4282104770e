"""The kernel and the small root that a lab machine boots from, made of the distribution's packages.

The kernel's package is unpacked into the cache and never installed, so that nothing boots
differently on the host.
"""
import contextlib
import fcntl
import gzip
import hashlib
import io
import lzma
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile
import time
import zlib

from errors import LabError, Unavailable

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
CACHE = pathlib.Path(os.environ.get("SHMEMCTL_LAB_CACHE") or SOURCE / "build" / "lab")

# Another lab may be about to boot from what is younger.
UNUSED_S = 3600

# Meta packages of a kernel that has rdma_rxe: Debian's, Ubuntu's.
KERNELS = ("linux-image-amd64", "linux-image-generic")

# What a lab may need; with what these depend on. The kernel asks for most of them by itself.
MODULES = (
    "virtio_pci", "virtio_net", "virtio_console", "9p", "9pnet_virtio", "e1000e",
    "rdma_rxe", "ib_uverbs", "ib_umad", "rdma_ucm", "crc32_generic", "crc32_pclmul",
    "sch_netem", "sch_tbf", "sch_prio", "cls_u32", "sch_ingress", "cls_flower", "cls_fw",
    "act_mirred", "act_skbedit", "act_gact", "veth", "dummy", "bridge", "tun")

PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "depmod": "kmod",
    "modprobe": "kmod", "ip": "iproute2", "tc": "iproute2", "rdma": "iproute2"}


def program(name):
    """The path of a program, also where only root's PATH has it."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = shutil.which(name, path=path)
    if not found:
        raise Unavailable(f"the lab needs {name}, which is not on this host",
                          f"install the package {PROGRAMS.get(name, name)}")
    return found


def check_host():
    """Raises Unavailable where something that the lab needs is not installed."""
    if os.uname().machine != "x86_64":
        raise Unavailable(f"the lab's machines are x86_64, and this host is {os.uname().machine}",
                          "run it on an x86_64 host")
    for name in PROGRAMS:
        program(name)


def run_quietly(step, *command, cwd=None):
    """The standard output of a command that has to work."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False, timeout=600)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise LabError(f"{step}: {pathlib.Path(str(command[0])).name} ended with "
                       f"{done.returncode}: {last}", "run the command by hand to see more")
    return done.stdout


# --- the kernel's package ---

def kernel_packages():
    """The names of the packages that hold the newest kernel and its modules."""
    for meta in KERNELS:
        shown = subprocess.run(["apt-cache", "depends", meta], capture_output=True, text=True,
                               check=False).stdout
        found = re.search(r"Depends: linux-image-(?:unsigned-)?(\d\S+)", shown)
        if not found:
            continue
        version = found.group(1)
        names = [found.group(0).split()[-1]]
        for part in ("linux-modules", "linux-modules-extra"):
            policy = subprocess.run(["apt-cache", "policy", f"{part}-{version}"],
                                    capture_output=True, text=True, check=False).stdout
            if "Candidate: (none)" not in policy and "Candidate:" in policy:
                names.append(f"{part}-{version}")
        return names
    raise Unavailable(f"apt knows no kernel package ({', '.join(KERNELS)})", "run apt-get update")


def download_kernel(folder):
    """The kernel's packages, in folder. A list of packages that is old names files that are gone."""
    try:
        for package in kernel_packages():
            run_quietly(f"download {package}", "apt-get", "download", package, cwd=folder)
    except LabError:
        if os.geteuid() != 0:
            raise
        run_quietly("update the list of packages", "apt-get", "update")
        for package in kernel_packages():
            run_quietly(f"download {package}", "apt-get", "download", package, cwd=folder)


def fetch_kernel(folder):
    """Downloads and unpacks the kernel into folder, which appears complete or not at all."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="kernel.") as work:
        work = pathlib.Path(work)
        (work / "debs").mkdir()
        try:
            download_kernel(work / "debs")
        except LabError as error:
            raise Unavailable(str(error), "run apt-get update, and check the network") from error
        for deb in sorted((work / "debs").glob("*.deb")):
            run_quietly("unpack the kernel", "dpkg-deb", "-x", deb, work / "root")
        os.rename(work / "root", folder)


def modules_root(kernel):
    """(the folder with lib/modules below it, the kernel's version)."""
    for root in (kernel, kernel / "usr"):
        for version in sorted((root / "lib" / "modules").glob("*")):
            if (version / "kernel").is_dir():
                return root, version.name
    raise LabError(f"no modules below {kernel}", f"remove {kernel}, and try again")


def unpack_image(image):
    """The ELF kernel inside of a bzImage, or None: under emulation its own unpacking costs seconds."""
    data = image.read_bytes()
    decoders = {b"\xfd7zXZ\0": lambda packed: lzma.LZMADecompressor().decompress(packed),
                b"\x1f\x8b\x08": lambda packed: zlib.decompressobj(31).decompress(packed)}
    if shutil.which("zstd"):
        decoders[b"\x28\xb5\x2f\xfd"] = lambda packed: subprocess.run(
            ["zstd", "-dcq"], input=packed, capture_output=True, check=False).stdout
    for magic, decode in decoders.items():
        at = data.find(magic)
        while at >= 0:
            with contextlib.suppress(lzma.LZMAError, zlib.error):
                kernel = decode(data[at:])
                if kernel.startswith(b"\x7fELF"):
                    return kernel
            at = data.find(magic, at + 1)
    return None


def kernel_image(root, kernel, version):
    """The file that QEMU boots: the kernel unpacked where we can, else as the package has it."""
    packed = root / "boot" / f"vmlinuz-{version}"
    plain = kernel / "vmlinux"
    if not plain.is_file():
        unpacked_kernel = unpack_image(packed)
        if unpacked_kernel is None:
            return packed
        part = plain.with_suffix(".part")
        part.write_bytes(unpacked_kernel)
        part.rename(plain)
    return plain


# --- the small root ---

def unpacked(path):
    """A module's bytes; distributions compress them in different ways."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return subprocess.run([program("zstd"), "-dc", path], capture_output=True, check=True).stdout
    return data


def module_files(root, version):
    """The files of MODULES and of all that they depend on."""
    if not (root / "lib" / "modules" / version / "modules.dep.bin").is_file():
        run_quietly("index the modules", program("depmod"), "-b", root, version)
    found = {}
    for name in MODULES:
        shown = subprocess.run(
            [program("modprobe"), "-d", str(root), "-S", version, "--show-depends", name],
            capture_output=True, text=True, check=False).stdout
        for line in shown.splitlines():
            if line.startswith("insmod "):
                path = pathlib.Path(line.split()[1])
                found[path.name] = path
    if not any(name.startswith("rdma_rxe.ko") for name in found):
        raise Unavailable(f"kernel {version} has no rdma_rxe", "use the distribution's usual kernel")
    return sorted(found.values())


def cpio_entry(name, mode, data=b"", number=0):
    """One entry of an archive in the format newc."""
    encoded = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + encoded
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def cpio_of(folder):
    """The archive of a folder. Not compressed: the guest would unpack it under emulation."""
    archive = io.BytesIO()
    for number, path in enumerate(sorted(folder.rglob("*")), start=1):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            archive.write(cpio_entry(name, stat.S_IFLNK | 0o777, os.readlink(path).encode(), number))
        elif path.is_dir():
            archive.write(cpio_entry(name, stat.S_IFDIR | 0o755, b"", number))
        else:
            archive.write(cpio_entry(name, stat.S_IFREG | 0o755, path.read_bytes(), number))
    archive.write(cpio_entry("TRAILER!!!", 0))
    return archive.getvalue()


def write_initramfs(target, root, version):
    """Busybox, the modules with their index, and our init."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="initramfs.") as work:
        work = pathlib.Path(work)
        for name in ("bin", "sbin", "dev", "proc", "sys", "host", "etc"):
            (work / name).mkdir()
        modules = work / "lib" / "modules" / version
        modules.mkdir(parents=True)
        for path in module_files(root, version):
            (modules / re.sub(r"\.(xz|gz|zst)$", "", path.name)).write_bytes(unpacked(path))
        for name in ("modules.builtin", "modules.order"):
            shutil.copy(root / "lib" / "modules" / version / name, modules)
        run_quietly("index the modules", program("depmod"), "-b", work, version)
        shutil.copy(program("busybox"), work / "bin" / "busybox")
        for applet in ("sh", "mount", "mkdir", "ln", "chroot", "poweroff", "cat", "ip",
                       "kill", "mkfifo", "readlink", "sleep", "tr"):
            (work / "bin" / applet).symlink_to("busybox")
        (work / "sbin" / "modprobe").symlink_to("../bin/busybox")
        shutil.copy(HERE / "guest_init.sh", work / "init")
        part = target.with_suffix(".part")
        part.write_bytes(cpio_of(work))
        part.rename(target)


@contextlib.contextmanager
def locked(path):
    """One lab at a time makes the image."""
    with open(path, "w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def prepare():
    """(kernel, initramfs): paths in the cache, made if they are not there yet."""
    check_host()
    CACHE.mkdir(parents=True, exist_ok=True)
    recipe = hashlib.sha256()
    for path in (HERE / "guest_init.sh", HERE / "image.py", pathlib.Path(program("busybox"))):
        recipe.update(path.read_bytes())
    with locked(CACHE / "lock"):
        kernel = CACHE / "kernel"
        if not kernel.is_dir():
            fetch_kernel(kernel)
        root, version = modules_root(kernel)
        initramfs = CACHE / f"initramfs-{version}-{recipe.hexdigest()[:12]}.cpio"
        if not initramfs.is_file():
            for old in CACHE.glob("initramfs-*.cpio"):
                if time.time() - old.stat().st_mtime > UNUSED_S:
                    old.unlink()
            write_initramfs(initramfs, root, version)
        return kernel_image(kernel, kernel, version), initramfs
