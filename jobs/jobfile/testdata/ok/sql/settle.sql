update invoices set settled = true where day = $1 and mode = $2;
