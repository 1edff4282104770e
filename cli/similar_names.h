// Which name was probably meant: of flags, subcommands and keys of a configuration file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

/// The names that `word` may mean, best first; nothing if none is near, or if more than three are.
/// In this order: the same name written otherwise (case, _ for -, an environment variable's name,
/// with or without "no-", its letters in another order: "form" of "from"); names that `word`
/// abbreviates ("min" of "min-bytes", "topk" of "num-topk"); the nearest spelling by edit distance;
/// names that begin `word` ("topo" of "topology").
/// @param names without dashes in front
std::vector<std::string> similar_names(std::string_view word,
                                       const std::vector<std::string>& names);

/// "a", "a or b", "a, b or c".
std::string either(const std::vector<std::string>& names);

} // namespace shmemctl
