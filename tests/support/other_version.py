"""Another version of the binary: the same one, whose PEs give messages the next version's number.

The number is the object `archive_version` of src/base/archive.h. Its place in the file is found through the
binary's table of symbols.
"""
import pathlib
import struct

SYMBOL = b"_ZN8shmemctl15archive_versionE"
#: Of ELF64, little-endian: what follows the 16 bytes of e_ident; a section; a symbol; a segment.
FILE_HEADER, SECTION, SYMBOL_ENTRY, SEGMENT = (struct.Struct(f"<{code}") for code in (
    "HHIQQQIHHHHHH", "IIQQQQIIQQ", "IBBHQQ", "IIQQQQQQ"))
SYMBOL_TABLE = 2   # sh_type: SHT_SYMTAB
LOADED = 1         # p_type: PT_LOAD


class NoSymbol(Exception):
    """The binary has no table of symbols, or the number is not in it."""


def entries(image, layout, offset, size_bytes, count):
    return [layout.unpack_from(image, offset + index * size_bytes) for index in range(count)]


def find_symbol(image, name):
    """(address, size) of a symbol in an ELF image."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise NoSymbol("it is no 64-bit ELF file")
    header = FILE_HEADER.unpack_from(image, 16)
    sections = entries(image, SECTION, header[5], header[10], header[11])
    for section in sections:
        if section[1] != SYMBOL_TABLE:
            continue
        names = sections[section[6]][4]
        for entry in range(section[4], section[4] + section[5], SYMBOL_ENTRY.size):
            at, _, _, _, address, size_bytes = SYMBOL_ENTRY.unpack_from(image, entry)
            if image.startswith(name + b"\0", names + at):
                return address, size_bytes
    raise NoSymbol(f"it has no symbol {name.decode()}: it was stripped, or link-time optimisation removed it")


def offset_in_file(image, address):
    header = FILE_HEADER.unpack_from(image, 16)
    for segment in entries(image, SEGMENT, header[4], header[8], header[9]):
        kind, _, offset, start, _, size_bytes = segment[:6]
        if kind == LOADED and start <= address < start + size_bytes:
            return offset + address - start
    raise NoSymbol("its symbol lies in no segment of the file")


def make_other_version(binary, folder):
    """Writes another version of `binary` into the folder; its path. Throws NoSymbol."""
    source = pathlib.Path(binary)
    image = bytearray(source.read_bytes())
    address, size_bytes = find_symbol(image, SYMBOL)
    if size_bytes != 4:
        raise NoSymbol(f"{SYMBOL.decode()} has {size_bytes} bytes, not 4")
    at = offset_in_file(image, address)
    number = struct.unpack_from("<I", image, at)[0]
    if not 0 < number < 1 << 16:
        raise NoSymbol(f"{SYMBOL.decode()} is {number}, which is no version")
    struct.pack_into("<I", image, at, number + 1)
    path = pathlib.Path(folder) / "shmemctl-of-another-version"
    path.write_bytes(image)
    path.chmod(0o755)
    return path
