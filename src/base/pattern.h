// Names by pattern, as shells write them.
#pragma once

#include <string_view>

namespace shmemctl {

/// Whether `name` is `pattern`, in which * is any text and ? any character.
bool matches_pattern(std::string_view name, std::string_view pattern);

} // namespace shmemctl
