// Shortens lists of names and numbers: "node[001-120]", "0-3,8".
#pragma once

#include <string>
#include <vector>

namespace shmemctl {

/// Merges names that differ in one number, in the notation of Slurm and ClusterShell:
/// "node[001-003,7]". Equal names appear once. The order is that of first appearance, with numbers
/// ascending. Ranges after the 16th in one pair of brackets are only counted: "...,31,+4]".
/// @return each element is one name, or several in brackets
std::vector<std::string> folded_names(const std::vector<std::string>& names);
/// The folded names as text: "a, b, node[001-120]".
std::string fold_names(const std::vector<std::string>& names);

/// Numbers as ranges: "0-3,8". The numbers may be in any order. With more than `max_shown` ranges,
/// the numbers in the others are counted: "0,2,4 and 9 more".
std::string fold_numbers(std::vector<int> numbers, std::size_t max_shown = 8);

} // namespace shmemctl
