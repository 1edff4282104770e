// Tries settings of a backend, with verification, and chooses by the time of the slowest rank.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reports/text.h"
#include "src/instruments/bench/moe/measure.h"

namespace shmemctl::moe {

/// One trial of settings. Times are by call, those of the rank that took longest, in us.
struct Attempt {
  Settings settings;
  bool own_choice = false;      ///< whether these are the backend's own choice
  std::vector<double> first_us; ///< measured for every attempt: a few calls
  /// Measured only for the best attempts: more calls, which alternate between the attempts.
  std::vector<double> last_us;
  std::string wrong; ///< error that verification found on any rank; such settings are not chosen

  /// The median of last_us, or of first_us if there are no last calls.
  double median_us() const;
};

struct Tuned {
  Direction direction;
  std::vector<Attempt> attempts; ///< the first one has the backend's own choice
  std::size_t chosen = 0;
  /// Noise of the last round: attempts that differ by less count as equally good.
  double noise_us = 0;

  const Attempt& choice() const { return attempts[chosen]; }
};

/// Tries the settings of both directions. Afterwards the backend uses the chosen ones. Returns
/// nothing for a backend without settings. Collective; the same on all ranks.
std::vector<Tuned> tune(Backend& backend, const Setup& setup, const Effort& effort,
                        const JobRank& rank);

/// Whether no attempt gave wrong data.
bool all_right(const std::vector<Tuned>& all);
/// By how much medians may differ by chance: two standard errors of their difference, but at least
/// half a percent, because such a small gain is not worth more SMs.
double noise_of(const std::vector<double>& one_us, const std::vector<double>& other_us);
/// Chooses among the attempts that have last_us, correct data, and a median at most noise above the
/// fastest: the one with the fewest multiprocessors; of equal ones the backend's own choice, else
/// the fastest. Sets noise_us.
void choose(Tuned& tuned);

nlohmann::json settings_json(const Settings& settings);
/// The value of the key "tuned" in an item of "moe".
nlohmann::json tuned_json(const std::vector<Tuned>& all);
/// Tables as text for people, and the options that select the choices in another run.
std::string tuned_text(const std::vector<Tuned>& all, const TextStyle& style);

} // namespace shmemctl::moe
