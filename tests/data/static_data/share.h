/* What the test programs use of StaticDataRegion, callable from C. */
#ifndef SHARE_H
#define SHARE_H
#ifdef __cplusplus
extern "C" {
#endif

/* Makes this program's variables symmetric between PEs 0 and 1; ends the program if it fails. */
void share_variables(int pe, const char* secret);
void unshare_variables(void);
/* Where the other PE's variable is mapped here; NULL if it is no shared variable. */
void* of_the_other(void* variable);
/* Returns when both PEs have called it. */
void meet(void);
/* Memory that the shared variables of this PE take. */
long shared_bytes(void);
/* What /proc/self/maps calls the pages at that address. */
void name_of_pages(const void* address, char* name, unsigned long size_bytes);
/* Says what is not so and ends the program. */
void require(int condition, const char* what);

#ifdef __cplusplus
}
#endif
#endif
