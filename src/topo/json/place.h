// Where in a document a value stands, as a JSON pointer for error messages.
#pragma once

#include <string>

namespace shmemctl::model_json {

/// A step from the value above; built on the stack while reading, printed only for an error.
struct Place {
  const Place* above = nullptr;
  const char* key = nullptr; ///< member of an object, or null for an item of an array
  std::size_t index = 0;

  Place member(const char* name) const { return {this, name, 0}; }
  Place item(std::size_t at) const { return {this, nullptr, at}; }
};

/// "/topology/model/gpus/3/pci".
inline std::string pointer_of(const Place& place) {
  const std::string step = place.key ? place.key : std::to_string(place.index);
  return (place.above ? pointer_of(*place.above) : "") + "/" + step;
}

} // namespace shmemctl::model_json
