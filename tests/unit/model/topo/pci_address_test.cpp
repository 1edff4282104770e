#include "src/model/topo/pci_address.h"

#include <gtest/gtest.h>

namespace shmemctl {

TEST(PciAddress, FormsOfTheField) {
  EXPECT_EQ(to_string(*parse_pci_address("0000:18:00.0")), "0000:18:00.0");
  EXPECT_EQ(to_string(*parse_pci_address("00000000:3B:00.0")), "0000:3b:00.0") << "NVML";
  EXPECT_EQ(to_string(*parse_pci_address("c1:00.1")), "0000:c1:00.1") << "lspci";
  EXPECT_EQ(to_string(*parse_pci_address("0000:18:00")), "0000:18:00.0");
  EXPECT_EQ(to_string(*parse_pci_address("10001:00:1f.7")), "10001:00:1f.7") << "VMD";
  EXPECT_LT(*parse_pci_address("0000:ff:1f.7"), *parse_pci_address("0001:00:00.0"));
}

TEST(PciAddress, RefusesWhatIsNone) {
  for (const char* text : {"", ":", "18", "0000:18:00.8", "0000:18:20.0", "0000:100:00.0",
                           "0000:18:00.0 ", "0000:18:00.0.0", "g:18:00.0", "-1:18:00.0",
                           "0000:+8:00.0", "0:0:0:0", "123456789:00:00.0", "0x0:18:00.0"})
    EXPECT_EQ(parse_pci_address(text), std::nullopt) << text;
}

} // namespace shmemctl
