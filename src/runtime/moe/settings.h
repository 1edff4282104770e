// Launch settings with which a user replaces the defaults of the kernels of dispatch and combine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace shmemctl::moe {

/// Direction of rows: to the experts, or back.
enum class Direction { dispatch, combine };
const char* to_string(Direction direction);

/// Launch settings of one direction; unset ones are chosen for the shape. The kernels of each path
/// use some of them.
struct Settings {
  std::optional<std::int32_t> sms;    ///< multiprocessors of a kernel
  std::optional<std::int32_t> warps;  ///< warps of a block
  std::optional<std::int32_t> stages; ///< rows, or chunks, that a warp has in flight
  /// Stages whose stores may still be in flight when the next load begins.
  std::optional<std::int32_t> kept;
  /// How many of `sms` only copy rows to this rank itself; 0: all do both.
  std::optional<std::int32_t> self_sms;
  std::optional<std::int32_t> in_place;    ///< 1: this rank's own rows stay where they are
  std::optional<std::int32_t> chunk_bytes; ///< bytes of a row that combine loads at a time
  std::optional<std::int32_t> chunk_rows;  ///< rows that cross nodes in one message

  bool operator==(const Settings& other) const = default;
};
struct DirectionSettings {
  Settings dispatch, combine;

  Settings& of(Direction direction) { return direction == Direction::combine ? combine : dispatch; }
  const Settings& of(Direction direction) const {
    return direction == Direction::combine ? combine : dispatch;
  }
};

/// A setting and its name, which is used on the command line and in reports.
struct SettingField {
  const char* name;
  std::optional<std::int32_t> Settings::*value;
};
inline constexpr std::array<SettingField, 8> setting_fields{
    {{"sms", &Settings::sms},
     {"warps", &Settings::warps},
     {"stages", &Settings::stages},
     {"kept", &Settings::kept},
     {"self_sms", &Settings::self_sms},
     {"in_place", &Settings::in_place},
     {"chunk_bytes", &Settings::chunk_bytes},
     {"chunk_rows", &Settings::chunk_rows}}};

/// "sms=24,warps=7"; "" if no setting is set.
std::string to_text(const Settings& settings);
/// Parses the output of to_text(), if it is not ""; settings may be in any order. Throws Error
/// (usage) for other text.
/// @param flag the flag with which the text was passed
Settings parse_settings(const std::string& flag, const std::string& text);
/// An error text if a setting is set in `given` but not in `known`; "" if there is none.
std::string unknown_setting(const Settings& given, const Settings& known);
/// `given`, with unset values taken from `otherwise`.
Settings filled(Settings given, const Settings& otherwise);

} // namespace shmemctl::moe
