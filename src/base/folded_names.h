// Lists of names and numbers in short: "node[001-120]", "0-3,8".
#pragma once

#include <string>
#include <vector>

namespace shmemctl {

/// Names that differ in one number as one, as Slurm and ClusterShell write them: "node[001-003,7]".
/// Equal names appear once; order of first appearance, numbers ascending. @return each a name, or
/// several in brackets
std::vector<std::string> folded_names(const std::vector<std::string>& names);
/// The folded names as text: "a, b, node[001-120]".
std::string fold_names(const std::vector<std::string>& names);

/// "0-3,8"; numbers may come in any order. With more than `max_shown` ranges, the others are
/// counted: "0,2,4 and 9 more".
std::string fold_numbers(std::vector<int> numbers, std::size_t max_shown = 8);

} // namespace shmemctl
