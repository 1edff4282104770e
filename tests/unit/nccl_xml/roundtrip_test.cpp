// Whatever the model holds, it comes back out of the XML.
#include <gtest/gtest.h>

#include <regex>

#include "src/base/error.h"
#include "src/topo/distance.h"
#include "src/topo/readers/reader.h"
#include "src/topo/readers/xml.h"
#include "src/topo/writers/writer.h"
#include "tests/support/random_node.h"

namespace shmemctl {
namespace {

/// NCCL's limits: 16 attributes per element, values below 255 bytes.
void check_limits(const XmlElement& element) {
  EXPECT_LE(element.attributes.size(), 16U) << element.position();
  for (const auto& [key, value] : element.attributes)
    EXPECT_LT(xml_escape(value).size(), 254U) << element.position() << " " << key;
  for (const XmlElement& child : element.children)
    check_limits(child);
}

void expect_identity(const Node& node, const std::string& what) {
  const std::string xml = write_nccl_xml(node);
  const Node back = read_nccl_xml(xml, what);
  ASSERT_EQ(first_difference(node, back), "") << what << "\n" << xml;
  ASSERT_EQ(write_nccl_xml(back), xml) << what;
  check_limits(parse_xml(xml, what));
}

TEST(NcclRoundTrip, AnyRandomNodeComesBack) {
  std::mt19937_64 random(20240611);
  for (int i = 0; i < 400; ++i) {
    expect_identity(test::random_node(random), "random node " + std::to_string(i));
    if (HasFatalFailure())
      return;
  }
}

} // namespace
} // namespace shmemctl
