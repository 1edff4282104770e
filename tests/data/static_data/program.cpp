// A C++ program whose variables, constructed before main, become symmetric and private again.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "share.h"

namespace {

struct Shape {
  virtual ~Shape() = default;
  virtual int corners() const = 0;
};
struct Square final : Shape {
  int corners() const override { return 4; }
};

std::string text = "constructed before main, and too long to lie in the string itself";
std::map<int, std::string> table = {{1, "one"}, {2, "two"}};
std::unique_ptr<Shape> shape = std::make_unique<Square>();
std::mutex mutex;
thread_local int of_this_thread = 3;
long shared_value = 8;

struct AtExit {
  ~AtExit() {
    if (text.size() != 65)
      std::_Exit(5);
  }
} at_exit;

int& counter() {
  static int value = std::atoi("40");
  return value;
}

void use_everything() {
  require(text.size() == 65 && table.at(2) == "two" && shape->corners() == 4, "objects are kept");
  require(of_this_thread == 3, "thread-local variables");
  const std::lock_guard lock(mutex);
  try {
    throw std::runtime_error(text);
  } catch (const std::exception& error) {
    require(text == error.what(), "exceptions");
  }
}

} // namespace

int main(int argc, char** argv) {
  require(argc == 3, "two arguments");
  const int pe = std::atoi(argv[1]);
  std::cout << "before ";
  counter() += 1;
  text.back() = '!';
  use_everything();
  share_variables(pe, argv[2]);
  use_everything();
  require(counter() == 41, "initialised once");
  table[3] = "three";
  std::thread thread([] {
    use_everything();
    const std::lock_guard lock(mutex);
    counter() += 1;
  });
  thread.join();
  meet();
  auto* other = static_cast<long*>(of_the_other(&shared_value));
  require(other != nullptr, "shared");
  *other = 50 + pe;
  meet();
  require(shared_value == 50 + (1 - pe), "the other PE wrote");
  std::cout << "after" << std::endl;
  meet();
  unshare_variables();
  use_everything();
  require(counter() == 42 && table.at(3) == "three" && shared_value == 50 + (1 - pe),
          "values are kept at the end");
  return 0;
}
