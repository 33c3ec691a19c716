#include <stdio.h>
#define MAX_SIZE 3
#define SQUARE(x) ((x) * (x))

struct view { int id; };
typedef struct point { int x; } point_t;
enum color { RED, GREEN = 2 };
union both { int a; };

int proto(int x);
extern int (*table[])(int);

/**
 * Hides the keyboard.
 * \param view the view
 * @return whether it was hidden
 */
static inline int hide(struct view *view, const char *name, int (*done)(int), ...) {
  // ask the system
  manager->hide(view, "text\n", 'c', MAX_SIZE);
  struct point p = { .x = 1 }; /* a point */
  return (int) call(NULL, RED) + SQUARE(p.x);
}

//! Its name.
//! Never NULL.
const char *name_of(void) { return 0; }

/* not documentation */
int (*pick(int a))(int) { return 0; }
void old(a, b) int a; char *b; { }
int **grid(int rows[], size_t n, char **names, double (*p)[3]) { return 0; }

static void
newline_style (int größe)
{
#ifdef DEBUG
  debug(größe);
#else
  release(größe);
#endif
}

#if defined(WIN32)
int wide(void) { return 1; }
#else
int wide(void) { return 2; }
#endif

__attribute__((noreturn)) void stop(void) { exit(1); }
