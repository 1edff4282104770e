// fmt's own functions, compiled once. Its package has them as a shared library, which a node with
// nothing installed lacks, or as headers, with which every file that formats a text compiles them
// again: half of the time of a build. cmake/Dependencies.cmake says for which versions.
#ifndef FMT_HEADER_ONLY

#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// What fmt's headers promise to be instantiated elsewhere, for the one kind of character used here.
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<format_context>, locale_ref);

} // namespace detail
FMT_END_NAMESPACE

#endif
