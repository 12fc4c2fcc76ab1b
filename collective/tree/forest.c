/* Forests: see forest.h. */
#include <stdlib.h>

#include "collective/tree/forest.h"

void coll_forest_init(struct coll_forest *f)
{
	*f = (struct coll_forest){ 0 };
	mpq_init(f->time);
}

void coll_forest_fini(struct coll_forest *f)
{
	for (size_t i = 0; i < f->trees.n; i++) {
		free(f->trees.v[i].via);
	}
	vec_fini(&f->trees);
	vec_fini(&f->routes);
	vec_fini(&f->hops);
	topo_free(f->logical);
	topo_group_free(f->group);
	mpq_clear(f->time);
}
