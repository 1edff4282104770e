// Tries a backend's settings, verified, and chooses by the time of the slowest rank.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reports/text.h"
#include "src/instruments/bench/moe/measure.h"

namespace shmemctl::moe {

/// Settings that were tried. Times: by call, of the rank that took longest, in us.
struct Attempt {
  Settings settings;
  bool own_choice = false;      ///< whether the backend chose it
  std::vector<double> first_us; ///< measured for every attempt: a few calls each
  /// Measured for good attempts only: more calls, in turn with each other.
  std::vector<double> last_us;
  std::string wrong; ///< what verification found on a rank; such settings are not chosen

  /// The median of the last calls, or of the first where there were no others.
  double median_us() const;
};

struct Tuned {
  Direction direction;
  std::vector<Attempt> attempts; ///< the backend's own choice is the first
  std::size_t chosen = 0;
  /// Noise of the last round: attempts that differ by less are equally good.
  double noise_us = 0;

  const Attempt& choice() const { return attempts[chosen]; }
};

/// Nothing for a backend without settings. Afterwards the backend uses the choices. Collective; the
/// same on all ranks.
std::vector<Tuned> tune(Backend& backend, const Setup& setup, const Effort& effort,
                        const JobRank& rank);

/// Whether no settings gave wrong data.
bool all_right(const std::vector<Tuned>& all);
/// How much medians may differ by chance: two standard errors of their difference, and half a
/// percent, which is not worth more SMs.
double noise_of(const std::vector<double>& one_us, const std::vector<double>& other_us);
/// The choice: of those that are not slower than the fastest by more than the noise, the one with
/// the fewest multiprocessors; of these the backend's own choice, else the fastest. Sets noise_us.
void choose(Tuned& tuned);

nlohmann::json settings_json(const Settings& settings);
/// For the key "tuned" of an item of "moe".
nlohmann::json tuned_json(const std::vector<Tuned>& all);
/// Tables for people, and the options that use the choices again.
std::string tuned_text(const std::vector<Tuned>& all, const TextStyle& style);

} // namespace shmemctl::moe
