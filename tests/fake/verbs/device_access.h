// How the fake NIC reads and writes memory of GPUs: of the fake driver by the place where it
// keeps it, of a real one by its copy engine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_verbs {

/// As a device writes: whole words, which somebody may be looking at.
void move_bytes(std::byte* to, const std::byte* from, std::size_t size_bytes);

/// Done on return. Ends the process if a driver refuses.
void access_device(std::uint64_t address, std::byte* data, std::size_t size_bytes, bool write);
/// How many bytes a file stands for that a driver has exported, from that address on; 0 if it is
/// none.
std::uint64_t exported_bytes(int file, std::uint64_t address);

} // namespace fake_verbs
