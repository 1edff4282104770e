// Compiles fmt's own functions once. The fmt package provides them as a shared library, which a
// bare node lacks, or as headers, with which every file that formats text compiles them again: half
// of the time of a build. cmake/Dependencies.cmake lists the supported versions.
#ifndef FMT_HEADER_ONLY

#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// The templates that fmt's headers declare as instantiated elsewhere, for the only character type
// that is used here.
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<format_context>, locale_ref);

} // namespace detail
FMT_END_NAMESPACE

#endif
