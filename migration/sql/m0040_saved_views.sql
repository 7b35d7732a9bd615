-- The filters of the list of invoices that a person keeps under a name.
CREATE TABLE saved_views (
    -- contact/7/9 or integrator/3.
    person varchar NOT NULL,
    taxpayer_id bigint NOT NULL,
    name varchar NOT NULL,
    -- The filters and the order, as the page has them in its address.
    query text NOT NULL,
    PRIMARY KEY (person, taxpayer_id, name)
);
